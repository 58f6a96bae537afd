"""Why does a model give what it gives, and what would change it: the curve, its workers in or out, what moves it."""

from horde_policy.board.detail import model_detail
from horde_policy.ui import model_figures, model_page, one_model, past_page, probe, what_if
from horde_policy.ui.history import find_past
from horde_policy.ui.page import open_source, show_problems
from horde_policy.views.other_rules import other_rules

opened = open_source()
state, fleet = opened.state, opened.fleet
model_page.choose_models(state, fleet.names)
size, context = state.max_length_tokens, state.max_context_tokens
detail = model_detail(fleet, state.models, size, context)
rules = other_rules(fleet, opened.snapshot.performance, state.models, size, context, detail.steps)
found = what_if.outcome(opened, detail)
past = find_past(opened)
what_if.show_left_out(opened)
model_page.show_title(opened, detail, found)
model_page.show_tiles(detail)
one_model.show_alone(opened)
model_figures.show_figures(opened, detail, rules, found, past_page.trail_waits(opened, past))
what_if.show_what_if(opened, detail, found)
past_page.show_trend(opened, detail, past)
model_page.show_workers(opened, detail)
model_page.show_refusal(opened, detail)
probe.show_probe(opened)
model_page.show_sentences(opened, detail, rules, found)
model_page.show_unknowns(detail)
show_problems(opened.snapshot)
