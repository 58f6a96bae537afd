"""The Overview on a screen on a wall: one line of figures, what fires, and as many models as fit, the worst first."""

from horde_policy.ui import address, components, history, past_page
from horde_policy.ui.headline import show_headline
from horde_policy.ui.page import Opened
from horde_policy.views import overview, overview_words
from horde_policy.views.wall import wall_data

__all__ = ["show_wall"]


def show_wall(opened: Opened, past: history.Past | history.Missing) -> None:
    """Show the page as a wall's screen has room for it; the way out, a button in its corner, stands there before it."""
    board = opened.board
    show_headline(overview_words.headline(board))
    components.pulse(key="overview.pulse", data={"tiles": overview.wall_tiles(board.pulse, opened.status)})
    past_page.show_firing(opened, past)
    data = wall_data(board, opened.state, address.links(opened.state).elsewhere, source=opened.status.source)
    components.wall(key="overview.wall-board", data=data)
