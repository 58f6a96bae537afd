"""How a page is set beside the theme: the wall's large type, the room's, and the board's dense head.

Parts of our own stand in a shadow root, which rules from outside do not reach; a custom property does (``--grid-type``).
"""

from typing import Final

from horde_policy.views.state import ViewState

__all__ = ["BEAMER", "BOARD", "CHOOSERS_PX", "FITTED", "ROOM", "WALL", "style_of"]

FITTED = """<style>
[data-testid="stButtonGroup"] [role="toolbar"] { flex-wrap: wrap; overflow: visible; }
@media (min-width: 641px) {
  [data-testid="stColumn"] { min-width: min(100%, 9rem); }
  [data-testid="stColumn"]:has([data-testid="stMultiSelect"]) { min-width: min(100%, 16rem); } }
[data-testid="stHorizontalBlock"]:has(> [data-testid="stColumn"] .horde-figure) > [data-testid="stColumn"] {
  min-width: clamp(0px, (54rem - 100%) * 999, 100%); }
:is(.st-key-week-gains, .st-key-sweep-heat) { max-width: 44rem; }
[data-testid="stHorizontalBlock"]:has([class*="st-key-decisions-grid"]) { max-width: 76rem; }
[data-testid="stNumberInput"] > [data-rac] { position: relative; }
[data-testid="stNumberInputContainer"]:has([role="alert"]) { overflow: visible; }
[data-testid="stNumberInput"] [role="alert"] {
  position: absolute; z-index: 5; left: -1px; top: calc(100% + 0.2rem); width: max-content; max-width: min(22rem, 80vw);
  height: auto; margin: 0; padding: 0.3rem 0.6rem; overflow: visible; clip: auto; clip-path: none; white-space: normal;
  font-size: 0.875rem; line-height: 1.4; background: inherit; border-inline-start: 2px solid; border-radius: 4px; }
[data-testid="stNumberInput"]:has([role="alert"]) [data-testid="InputInstructions"] { display: none; }
[data-testid="stNumberInput"]:has([role="alert"]) { margin-bottom: 3.6rem; }
[data-testid="stHorizontalBlock"]:has(> [data-testid="stElementContainer"] [data-testid="stNumberInput"] [role="alert"]) {
  padding-bottom: 3.6rem; }
[data-testid="stHorizontalBlock"] > [data-testid="stElementContainer"] > [data-testid="stNumberInput"] { margin-bottom: 0; }
</style>"""
"""Streamlit lets a row of choices run out of a narrow screen, to be scrolled sideways; here it goes on in a second row.

It stacks columns by the width of the window, of which the side bar takes a part; here they go by the room of their own row:
fields go on in a second row, and figures stand one above the other as soon as the row is narrower than 54 rem. Squares that lie
far apart are no map, so on a wide screen theirs stop growing. Of a number that a field does not take it draws the frame red, and
keeps the sentence that says why for those who hear the page; here it is seen, too."""

BOARD = """<style>
[data-testid="stMainBlockContainer"] [data-testid="stVerticalBlock"] { gap: 0.5rem; }
[data-testid="stMainBlockContainer"] h1 { padding: 0.35rem 0 1.2rem; font-size: 1.24rem; line-height: 1.22; text-wrap: pretty; }
[data-testid="stMainBlockContainer"] h2 { padding-top: 1.2rem; }
.st-key-overview-offers { row-gap: 0; }
.st-key-overview-offers a { padding-top: 0.1rem; padding-bottom: 0.1rem; }
</style>"""
"""The Overview's head gives way to the board: its first rows stand on the first screen."""

WALL = """<style>
html { font-size: clamp(14px, 1.15vw, 40px); }
[data-testid="stMain"] { --shared-buttons: none; --pulse-display: flex; }
[data-testid="stSidebar"], [data-testid="stHeader"], [data-testid="stExpandSidebarButton"] { display: none; }
[data-testid="stMainBlockContainer"] { padding-top: 0.5rem; padding-bottom: 0.25rem; }
[data-testid="stMainBlockContainer"] > [data-testid="stVerticalBlock"] { gap: 0.35rem; }
[data-testid="stMainBlockContainer"] h1 { padding: 0 0 1rem; font-size: 1.36rem; line-height: 1.2; text-wrap: pretty; }
.st-key-overview-wall { position: fixed; z-index: 10; right: 0.6rem; top: 0.4rem; width: auto; opacity: 0.78; }
.st-key-overview-wall:is(:hover, :focus-within) { opacity: 1; }
.st-key-shared-status { padding-right: 12rem; }
@media (max-width: 640px) {
  .st-key-overview-wall { position: static; align-self: end; }
  .st-key-shared-status { padding-right: 0; } }
</style>"""
"""For a screen on a wall: type by the width of the screen, no controls but the way out, which overprints nothing."""

BEAMER = """<style>
html { font-size: clamp(15px, 1.6vw, 24px); }
[data-testid="stMain"] { --grid-type: 1rem; --grid-small: 0.9rem; }
[data-testid="stSidebarUserContent"] { --nav-type: 0.8rem; --nav-line: 1.45; }
[data-testid="stMainBlockContainer"] { padding-top: 4.2rem; }
.st-key-guide-head h1 { padding: 0; }
@media (min-width: 641px) { .st-key-guide-steps {
  display: grid; grid-template-rows: repeat(4, auto); grid-auto-flow: column; justify-content: start; column-gap: 2.5rem; } }
.st-key-guide-onward { gap: 0.3rem; }
.st-key-guide-onward h2 { padding-top: 0; }
:is(.st-key-guide-links, .st-key-guide-onward) [data-testid="stPageLink-NavLink"] { background: transparent; }
</style>"""
"""For a page that is shown to a room."""

CHOOSERS_PX: Final = {
    "replay.traffic": 200, "replay.hours": 145, "replay.fleet": 215, "replay.requester": 170, "replay.outcome": 170,
    "replay.model": 320,
    "budget.requests": 200, "budget.asks": 215, "budget.prices": 190, "budget.model": 120, "budget.limit": 120,
    "budget.window": 105, "budget.reserve": 140,
    "decisions.rows": 170, "decisions.columns": 170, "decisions.colour": 170,
}  # fmt: skip
"""Key of a control of choices → its width at the page's own type, of 14 px."""

_GROWING = "\n".join(
    f".st-key-{key.replace('.', '-')} {{ min-width: {width_px / 14:.2f}rem; }}" for key, width_px in CHOOSERS_PX.items()
)
"""A width in pixels would stay as the type grows, and cut what is chosen off."""

ROOM = f"""<style>
html {{ font-size: clamp(14px, 1.1vw, 21px); }}
[data-testid="stMain"] {{ --grid-type: 1rem; --grid-small: 0.86rem; }}
[data-testid="stMainBlockContainer"] {{ padding-left: 0.9rem; padding-right: 0.9rem; }}
:is(.js-plotly-plot, #js-plotly-tester) :is(.annotation-text, .legendtext) {{
  font-size: max(12px, 0.8rem) !important; }}
.st-key-shared-source {{ min-width: 17.9rem; }}
:is(.st-key-shared-refresh, .st-key-shared-size) {{ min-width: 12.1rem; }}
@media (min-width: 641px) {{ {_GROWING} }}
@media (max-width: 640px) {{ :is(.st-key-shared-source, .st-key-shared-refresh, .st-key-shared-size) {{ min-width: 0; }} }}
</style>"""
"""For a real page that a step of the workshop opens: it grows with the beamer's picture, and tables are set as the text is."""


def style_of(page: str, state: ViewState) -> str:
    """Return the style of a page beside the one of all pages.

    >>> style_of("guide", ViewState()) == FITTED + BEAMER, style_of("week", ViewState(step=5)) == FITTED + ROOM
    (True, True)
    """
    if state.wall:
        return WALL
    own = {"guide": BEAMER, "overview": BOARD}.get(page, "")
    return FITTED + own + (ROOM if state.step and page != "guide" else "")
