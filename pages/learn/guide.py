"""How does the allowance work: a workshop in eight steps that drives the real pages on the demo, and the glossary."""

from horde_policy.ui import guide_page

state = guide_page.choose_step()
if not state.step:
    guide_page.show_contents(state)
    guide_page.show_glossary()
elif guide_page.is_over(state):
    guide_page.show_finish()
else:
    guide_page.show_step(state)
