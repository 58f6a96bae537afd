"""Who carries what: speeds, sizes, models and state of each worker, and what hangs on a single one."""

from horde_policy.board.moves import single_points
from horde_policy.ui import workers_page
from horde_policy.ui.headline import show_headline
from horde_policy.ui.history import find_past
from horde_policy.ui.page import open_source, show_problems
from horde_policy.views import workers

opened = open_source()
points = single_points(opened.board)
past = find_past(opened, whole=True)
show_headline(workers.headline(opened.board, points))
workers_page.show_tiles(opened, points)
workers_page.show_workers(opened, points, past)
workers_page.show_points(opened, points)
workers_page.show_past(opened, past)
show_problems(opened.snapshot)
