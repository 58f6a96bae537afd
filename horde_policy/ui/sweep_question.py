"""What is asked of a sweep: objectives, constraints typed as sentences, days held out, the scenarios that count."""

from collections.abc import Sequence

import streamlit as st

from horde_policy.errors import InputError, shown
from horde_policy.sweep.days import counted_days, hours_by_day
from horde_policy.sweep.judge import Question, default_holdout
from horde_policy.sweep.metrics import METRICS
from horde_policy.sweep.run import Sweep
from horde_policy.sweep.sentences import Constraint, Objective, parse_constraint, parse_objective
from horde_policy.ui.address import say, say_stays, seed, settle
from horde_policy.ui.notices import say_here
from horde_policy.ui.sweep_controls import write_asked
from horde_policy.views.sweep_state import SweepAsked
from horde_policy.views.sweep_words import days_words, fill_words

__all__ = ["question_of", "scenarios_of", "show_question"]

OBJECTIVES = tuple(str(parse_objective(key)) for key in METRICS)
SUGGESTED = (
    "p90 wait of registered ≤ 110 % of baseline",
    "p90 wait of registered ≤ 120 s",
    "p90 wait of funded ≤ 110 % of baseline",
    "refused share of unfunded ≤ baseline",
    "expired share ≤ 5 %",
    "tokens given free ≤ 110 % of baseline",
)
MOST_WEIGHED = 3
QUESTION = "sweep.question"
"""The part that says itself what it did not take."""

Scenario = tuple[float, str | None]


def scenarios_of(sweep: Sweep) -> list[Scenario]:
    """Return the loads and fill rules of a sweep, in their order."""
    rows = sweep.frame.select("load", "fill").unique().sort("load", "fill", nulls_last=False)
    return [(float(load), fill) for load, fill in rows.iter_rows()]


def question_of(asked: SweepAsked, sweep: Sweep) -> tuple[Question, tuple[str, ...]]:
    """Return the question that the address asks, and a note for each part of it that cannot be read."""
    notes: list[str] = []
    objectives: list[Objective] = []
    constraints: list[Constraint] = []
    for sentence in asked.want:
        try:
            objective = parse_objective(sentence)
        except InputError as error:
            notes.append(f"The link's want={shown(sentence)} is left out: {shown(error.value)} {error.rule}.")
            continue
        if objective.metric not in [other.metric for other in objectives]:
            objectives.append(objective)
    for sentence in asked.must:
        try:
            constraints.append(parse_constraint(sentence))
        except InputError as error:
            notes.append(f"The link's must={shown(sentence)} is left out: {shown(error.value)} {error.rule}.")
    places = scenarios_of(sweep)
    loads: tuple[float, ...] | None = None
    fills: tuple[str | None, ...] | None = None
    if asked.under.isdigit():
        if 1 <= int(asked.under) <= len(places):
            load, fill = places[int(asked.under) - 1]
            loads, fills = (load,), (fill,)
        else:
            notes.append(f"Left out: scenario {asked.under} is not among the {len(places)} of this sweep.")
    question = Question(
        objectives=tuple(objectives) or tuple(parse_objective(sentence) for sentence in SweepAsked().want),
        constraints=tuple(constraints),
        holdout_days=_held(asked, sweep, notes),
        loads=loads,
        fills=fills,
        across="worst" if asked.under == "worst" else "mean",
    )
    return question, tuple(notes)


def _days_of(sweep: Sweep) -> tuple[int, ...]:
    return counted_days(hours_by_day(sweep.frame))


def _held(asked: SweepAsked, sweep: Sweep, notes: list[str]) -> tuple[int, ...] | None:
    """Return the days held out; null, the last third, where the address's leave no day to choose on or none is there."""
    if asked.held is None:
        return None
    days = set(_days_of(sweep))
    unknown = tuple(day for day in asked.held if day not in days)
    if unknown:
        notes.append(f"Left out: {days_words(unknown)} cannot be held out, since this sweep has no such whole day.")
    known = tuple(day for day in asked.held if day in days)
    if days <= set(known):
        notes.append("Left out: the days held out leave no day to choose on.")
        return None
    return None if unknown and not known else known


def show_question(asked: SweepAsked, sweep: Sweep, question: Question) -> None:
    """Show what is asked; each control writes the address."""
    first, second, third = st.columns([1.1, 1.2, 1.7], gap="small", vertical_alignment="bottom")
    names = [str(objective) for objective in question.objectives]
    with first:
        seed("sweep.first", names[0])
        st.selectbox(
            "Wanted first: it decides", list(dict.fromkeys([*OBJECTIVES, names[0]])), key="sweep.first",
            on_change=_wanted, accept_new_options=True,
            help="Choose a figure, or type it as 'most tokens given free' or 'least p99 wait of funded'.",
        )  # fmt: skip
    with second:
        seed("sweep.weighed", names[1:])
        st.multiselect(
            "Weighed beside it on the front", list(dict.fromkeys([*OBJECTIVES, *names[1:]])), key="sweep.weighed",
            on_change=_wanted, max_selections=MOST_WEIGHED, placeholder="nothing else",
        )  # fmt: skip
    with third:
        sentences = [str(constraint) for constraint in question.constraints]
        seed("sweep.must", sentences)
        st.multiselect(
            "Must hold: type a sentence", list(dict.fromkeys([*sentences, *SUGGESTED])), key="sweep.must",
            on_change=_must, accept_new_options=True, placeholder="no constraint",
            help="As 'p90 wait of registered ≤ 120 s' (or <=, at most), 'expired share below 5 %', 'refused share ≤ baseline'.",
        )  # fmt: skip
    _days_and_scenarios(asked, sweep)
    say_here(QUESTION)


def _days_and_scenarios(asked: SweepAsked, sweep: Sweep) -> None:
    days = _days_of(sweep)
    places = scenarios_of(sweep)
    left, right = st.columns([1.1, 2.9], gap="small", vertical_alignment="bottom")
    with left:
        held = default_holdout(days) if asked.held is None else [day for day in asked.held if day in days]
        seed("sweep.held", list(held))
        st.multiselect(
            "Days held out", days, key="sweep.held", on_change=_hold, args=(days,), placeholder="none",
            help="Days that have no say in the choice; the choice is looked at again on them.",
        )  # fmt: skip
    with right:
        words = {"mean": "all, by their mean", "worst": "all, by the worst"} if len(places) > 1 else {"mean": "all there are"}
        words |= {str(n): f"load {load:g}, {fill_words(fill)}" for n, (load, fill) in enumerate(places, 1)}
        seed("sweep.under", asked.under if asked.under in words else "mean")
        st.selectbox(
            "Loads and fill rules that count", list(words), format_func=words.__getitem__, key="sweep.under",
            on_change=lambda: write_asked(under=st.session_state["sweep.under"]),
            help="Several become one figure by the rule that is named here; seeds and days are pooled.",
        )  # fmt: skip


def _wanted() -> None:
    """Take the objectives; what is no metric is refused and the control set back."""
    typed: Sequence[str] = [st.session_state["sweep.first"], *st.session_state["sweep.weighed"]]
    try:
        objectives = [parse_objective(sentence) for sentence in typed if sentence]
    except InputError as error:
        say_stays("What is wanted stays", error, again="sweep.first", at=QUESTION)
        return
    kept = {objective.metric.key: objective for objective in reversed(objectives)}
    want = tuple(str(kept[key]) for key in dict.fromkeys(o.metric.key for o in objectives))
    settle("sweep.first", want[0])
    settle("sweep.weighed", list(want[1:]))
    write_asked(want=want)


def _must() -> None:
    """Take the constraints; a sentence that cannot be read is refused with what can stand there, and the control set back."""
    try:
        sentences = [str(parse_constraint(sentence)) for sentence in st.session_state["sweep.must"]]
    except InputError as error:
        say_stays("The constraints stay", error, again="sweep.must", at=QUESTION)
        return
    must = tuple(dict.fromkeys(sentences))
    settle("sweep.must", list(must))
    write_asked(must=must)


def _hold(days: tuple[int, ...]) -> None:
    held = tuple(sorted(st.session_state["sweep.held"]))
    if set(held) == set(days):
        say("The days held out stay: a sweep needs a day to choose on.", again="sweep.held", at=QUESTION)
        return
    write_asked(held=None if held == default_holdout(days) else held)
