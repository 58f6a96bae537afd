"""Where the figures come from: every source with its state, age, limit and problems, and the history's recorder."""

from horde_policy.ui import sources_page
from horde_policy.ui.page import see_source, show_no_data

state, seen = see_source()
sources_page.show_sources(state)
found, now = sources_page.figures()
if seen is not None and seen.snapshot is None:
    show_no_data(state, seen)
sources_page.show_others(now)
sources_page.show_problems(found)
sources_page.show_uploads()
sources_page.show_history(now)
