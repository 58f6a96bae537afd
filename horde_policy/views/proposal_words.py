"""The sentences of a change proposal: its headline, its summary, its caveats, and what would refute it."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from horde_policy.sweep.inputs import MadeUp
from horde_policy.sweep.metrics import METRICS, PRODUCTION_METRICS
from horde_policy.sweep.proposal import Proposal
from horde_policy.views.replay_runs import settings_words
from horde_policy.views.sweep_words import SETTING_WORDS, figure_words, setting_value
from horde_policy.views.text import count, count_of, ratio, seconds, visible

__all__ = ["CAVEATS", "caveat_sentence", "headline", "refuting_sentences", "summary_sentences", "synthetic_words"]

Facts = Mapping[str, Any]

MIX_POINTS = 10
"""A share of production that is off by more percentage points makes another traffic of it."""


def headline(proposal: Proposal) -> str:
    """Return what is proposed, in one line."""
    words = settings_words(proposal.settings, proposal.baseline)
    if proposal.settings == proposal.baseline:
        return "Keep the settings in force"
    return f"Change proposal: {words}" + (" (picked by hand)" if proposal.picked else "")


def summary_sentences(proposal: Proposal) -> list[str]:
    """Return the proposal in a few sentences: what it gains and costs, how sure that is, what other days say."""
    question = proposal.judgement.question
    first = proposal.comparisons[0]
    metric = METRICS[first.metric]
    if proposal.settings == proposal.baseline:
        return [_why_keep(proposal)]
    verdict = {
        "better": "more than noise",
        "worse": "worse, beyond noise",
        "within_noise": "a difference within the noise",
        "same": "no difference",
        "too_few_days": "on too few days to tell whether that is noise",
        "not_known": "a difference that is not known",
    }[first.verdict]
    figures = f"{figure_words(metric, first.point)} in place of {figure_words(metric, first.baseline)}"
    sentences = [f"The {metric.phrase} becomes {figures}: {verdict}."]
    if not proposal.judgement.row(str(proposal.judgement.baseline))["feasible"]:
        sentences.insert(0, "The settings in force do not meet the constraints.")
    for comparison in proposal.comparisons[1 : len(question.objectives)]:
        phrase = METRICS[comparison.metric].phrase
        now, then = (figure_words(comparison.metric, value) for value in (comparison.baseline, comparison.point))
        sentences.append(f"The {phrase} goes from {now} to {then}.")
    if proposal.holdout_days:
        held = f"{first.holdout_better_days} of {len(proposal.holdout_days)}"
        sentences.append(
            f"It is better on {first.better_days} of the {len(proposal.days)} days it was chosen on, and on {held} held out."
        )
    sentences.append(_how_sure(proposal))
    return sentences


def _how_sure(proposal: Proposal) -> str:
    alike = proposal.alike
    others = "no other setting comes near" if alike == 0 else f"{count(alike)} others cannot be told from the best"
    return f"It is the best in {ratio(proposal.certainty)} of the resamples of the days; {others}."


def _why_keep(proposal: Proposal) -> str:
    judgement = proposal.judgement
    first = judgement.question.objectives[0].metric
    verdicts = set(judgement.points["verdict"].to_list())
    if verdicts == {"same"}:
        return f"No setting that was tried changes the {first.phrase} at all."
    if "too_few_days" in verdicts:
        return f"The sweep has too few days or seeds to tell any difference of the {first.phrase} from noise."
    return (
        f"No setting that meets the constraints is better than those in force beyond noise in the {first.phrase}: what "
        "differs is within it."
    )


# --- caveats ------------------------------------------------------------------------------------------------------------


def _loads(facts: Facts) -> str:
    return ", ".join(f"{load:g}" for load in facts["loads"])


def _partial(facts: Facts) -> str:
    each = " (load, fill rule and seed)" if facts["of_what"] == "scenarios" and facts["scenarios_of"] > 1 else ""
    many = count_of(facts["scenarios_of"], facts["of_what"].removesuffix("s"))
    under = f"{count(facts['scenarios'])} of {many}{each}"
    made = f"Made from {count(facts['points'])} of {count_of(facts['points_of'], 'setting')} under {under}"
    if facts["scenarios"] < facts["scenarios_of"]:
        return f"{made}: the sweep was stopped before the end, and the other {facts['of_what']} are not done for all of them."
    return f"{made}: the sweep was stopped before the end, and the other settings are not done."


def _unserved(facts: Facts) -> str:
    least, most = ratio(facts["least"]), ratio(facts["most"])
    share = most if least == most else f"{least} to {most} (by fill rule)"
    return (
        f"No worker of this fleet serves the models of {share} of the requests: what of them is admitted can only wait and "
        "expire, whatever the settings are, and counts in every share and wait here."
    )


_SYNTHETIC: Final[dict[MadeUp, str]] = {
    "traffic": "The traffic is synthetic",
    "fleet": "The fleet is synthetic",
    "both": "Traffic and fleet are synthetic",
    "either": "Traffic or fleet is synthetic, the sweep's file does not say which",
}


def synthetic_words(which: MadeUp) -> str:
    """Return which of a sweep's inputs are synthetic, as the beginning of a sentence.

    >>> synthetic_words("fleet")
    'The fleet is synthetic'
    """
    return _SYNTHETIC[which]


CAVEATS: Final[dict[str, Callable[[Facts], str]]] = {
    "partial": _partial,
    "reconstruction": lambda _: (
        "The traffic is a reconstruction from exported counts: sizes, instants and answers of single requests were drawn."
    ),
    "synthetic": lambda f: f"{synthetic_words(f['which'])}: nothing here was measured on a horde.",
    "fill_rule": lambda _: (
        "No trace records what requests ask for, who asks, or who can pay: a fill rule assigned it, and the verdicts depend on "
        "it more than on the trace:"
    ),
    "one_fill_rule": lambda _: "One fill rule only was tried. Look at a second one before deciding.",
    "unserved_models": _unserved,
    "undated": lambda _: "The trace has no real dates: days are counted from its start.",
    "one_load": lambda f: (
        f"One load only ({f['load']:g}) was tried"
        + (f", at {ratio(f['utilisation'])} of what the fleet could make" if f["utilisation"] is not None else "")
        + ". A few per cent more or less can move waits a lot."
    ),
    "across_loads": lambda f: (
        f"Loads {_loads(f)} became one figure by " + ("their mean." if f["rule"] == "mean" else "the worst of them.")
    ),
    "few_days": lambda f: f"Chosen on {f['days']} days: at least {f['least']} days (or seeds) are needed to tell noise.",
    "short_day": lambda f: (
        f"Day {f['day']} is no whole day: its requests span {seconds(f['hours'] * 3600)} of 24 h. It was replayed and is "
        "among the rows of the sweep; no figure, interval or day held out is of it."
    ),
    "no_whole_day": lambda f: (
        f"The traffic is shorter than a day, {seconds(f['hours'] * 3600)}: tokens a day are the pace of this time over 24 h, and "
        "the other hours may differ."
    ),
    "within_noise": lambda _: "The difference in the deciding metric is within the noise.",
    "does_not_meet": lambda _: "These settings do not meet the constraints.",
    "not_certain": lambda f: f"The proposed settings are the best in {ratio(f['certainty'])} of the resamples of the days only.",
    "no_holdout": lambda _: "No day was held out: nothing shows how the choice does on days that had no say.",
    "holdout_disagrees": lambda f: f"On the {f['days']} days held out it is better on {f['better']} only.",
    "one_seed": lambda _: "One seed only: nothing shows how much the draws of the fill rule matter.",
    "dropped": lambda f: "Combinations were left out: " + "; ".join(f"{k} ({count(n)})" for k, n in f["reasons"].items()) + ".",
    "edge": lambda f: (
        f"{SETTING_WORDS[f['setting']][0]} lies at the edge of what was tried ({setting_value(f['setting'], f['value'])}): the "
        "best may lie beyond."
    ),
    "clients_leave": lambda _: "Refused clients are taken to leave; those that send again add load and change the refused share.",
    "no_job_timeout": lambda _: (
        "Jobs were not cut off. The server ends a text job after 150 s, so that 4,096 tokens need 27.3 tok/s on one job."
    ),
    "waits_count_expired": lambda f: (
        "Waits are from sending to the last start; an expired request counts with its time to live, "
        f"{seconds(f['request_ttl_s'])}. Production's histogram of queue waits holds started requests only, and so do the "
        "queue waits of the last table."
    ),
}
"""Code of a caveat → its sentence."""


def caveat_sentence(code: str, facts: object) -> tuple[str, tuple[str, ...]]:
    """Return a caveat as a sentence, and names from outside that stand behind it."""
    given: Facts = facts if isinstance(facts, Mapping) else {}
    names = tuple(visible(str(rule)) for rule in given.get("rules", ())) if code == "fill_rule" else ()
    return CAVEATS[code](given), names


# --- what would refute it -----------------------------------------------------------------------------------------------


def refuting_sentences(proposal: Proposal) -> list[str]:
    """Return what somebody who wants to refute the proposal should look at."""
    sizes = max(proposal.mix.by_size.items(), key=lambda item: item[1])
    return [
        *_without_range(proposal),
        "Before the change: if a day of production lies outside the middle column more often than one day in twenty, the replay "
        "does not describe this horde, and nothing here holds.",
        "After the change: if days lie outside the right column as often, the change does not do what is said here: take it "
        "back.",
        f"If requesters or sizes in horde.text.free_allowance.decisions are off by more than {MIX_POINTS} percentage "
        f"points from those above (the most asked size is {sizes[0]}, {ratio(sizes[1])}), sweep again with the measured mix.",
        "If clients that were refused come back with smaller requests or later, the refused share here is too high and the load "
        "too low: sweep again with client = resend and client = return.",
    ]


def _without_range(proposal: Proposal) -> list[str]:
    """Return that nothing can be held against what was the same on every replayed day, if anything was."""
    ends = {e.metric: ((e.baseline_low, e.baseline_high), (e.low, e.high)) for e in proposal.expected}
    level = [key for key, pairs in ends.items() if any(low is not None and low == high for low, high in pairs)]
    if not level:
        return []
    phrases = " and the ".join(PRODUCTION_METRICS[key].phrase for key in level)
    return [f"The {phrases}: the same on every replayed day, so there is no range, and no single day refutes that part."]
