"""A judged sweep in words and rows: its headline, what warns of it, the table of all points, the one looked at, the settings."""

from collections.abc import Mapping
from typing import Any, Final

import polars as pl

from horde_policy.replay.fill_rule import FillRule
from horde_policy.sweep.inputs import MadeUp, made_up
from horde_policy.sweep.judge import Judgement
from horde_policy.sweep.noise import LEAST_BLOCKS
from horde_policy.sweep.proposal import Proposal
from horde_policy.sweep.run import Sweep
from horde_policy.sweep.unserved import unserved_range
from horde_policy.units import one_or_range
from horde_policy.views import proposal_words
from horde_policy.views.grid import Column, Row
from horde_policy.views.replay_words import fleet_words
from horde_policy.views.review_words import share_range_text
from horde_policy.views.sweep_link import base_load_of
from horde_policy.views.sweep_words import (
    SETTING_WORDS,
    VERDICTS,
    constraint_words,
    days_words,
    difference_words,
    effect_words,
    figure_words,
    fill_words,
    metric_words,
    setting_value,
    short_days_words,
    with_bounds,
)
from horde_policy.views.text import count, count_of, ratio, visible

__all__ = [
    "CHECK_COLUMNS",
    "COMPARED_COLUMNS",
    "INTRODUCTION",
    "SENSITIVITY_COLUMNS",
    "check_rows",
    "compared_rows",
    "front_words",
    "headline",
    "point_columns",
    "point_rows",
    "points_key",
    "rests_on",
    "sensitivity_rows",
    "unserved_note",
    "warnings_of",
]

INTRODUCTION: Final = (
    "A sweep replays the same requests under many settings, and says which to choose, how sure that is, and what the choice does "
    "on days that had no say in it. Click a square, a dot or a row to look at its settings."
)

MADE_UP: Final[dict[MadeUp, str]] = {
    "traffic": "the traffic",
    "fleet": "the fleet",
    "both": "traffic and fleet",
    "either": "traffic or fleet (the sweep's file does not say which)",
}
"""Which of a sweep's inputs are synthetic, as words."""

_FLEET_NEEDS: Final = {"from", "synthetic", "workers", "models", "combined_speed_tok_per_s"}
_LOUD: Final = (
    "few_days", "within_noise", "does_not_meet", "not_certain", "no_holdout", "holdout_disagrees", "partial", "short_day",
    "no_whole_day",
)  # fmt: skip
"""Caveats that stand beside the answer and not only in the proposal."""

HALF: Final = 0.5


def headline(proposal: Proposal | None) -> str:
    """Return the answer in one line."""
    return "No settings that were tried meet the constraints" if proposal is None else proposal_words.headline(proposal)


def front_words(judgement: Judgement, dots: int, *, whiskers: bool) -> str:
    """Return what the figure of the front shows: how many settings are on it, in how many dots, what its whiskers are, if any."""
    on_front = int(judgement.points["front"].sum())
    shared = (
        f", in {count_of(dots, 'dot')}: the number beside a dot says how many settings share it, equal or too close to tell apart"
        if dots < on_front
        else ""
    )
    return (
        f"{count(on_front)} of {count_of(judgement.points.height, 'setting')} are on the front{shared}. Of those that meet the "
        "constraints, none is better in one objective without being worse in another."
        + (" Whiskers: the 95 % interval of the difference from the settings in force." if whiskers else "")
    )


def warnings_of(judgement: Judgement, proposal: Proposal | None) -> list[str]:
    """Return what somebody who reads the answer must know before it: noise, days, constraints."""
    found = []
    if judgement.baseline is None:
        found.append("The sweep lacks the settings in force: nothing can be compared with them.")
    if proposal is not None:
        found += [proposal_words.caveat_sentence(c.code, c.facts)[0] for c in proposal.caveats if c.code in _LOUD]
    if judgement.evidence.blocks >= LEAST_BLOCKS and judgement.baseline is not None:
        found += _noise(judgement)
    return list(dict.fromkeys(found))


def _noise(judgement: Judgement) -> list[str]:
    """Return that differences are within the noise: of all points together, or of the one that looks best."""
    first = judgement.question.objectives[0].metric
    others = judgement.points.filter(~pl.col("baseline") & pl.col("feasible"))
    verdicts = set(others["verdict"].to_list())
    if verdicts and verdicts <= {"same"}:
        return [f"No settings that meet the constraints change the {first.phrase}: there is nothing to choose between."]
    if verdicts and verdicts <= {"same", "within_noise"}:
        return [
            f"Within the noise: no settings that meet the constraints differ from those in force in the {first.phrase} by more "
            "than the days differ among themselves."
        ]
    best = judgement.best
    if best is not None and judgement.row(best)["verdict"] == "within_noise":
        return ["The settings that look best are within the noise: their lead may be luck."]
    return []


def unserved_note(sweep: Sweep, judgement: Judgement) -> tuple[str, bool] | None:
    """Return a word on models that no worker of the fleet serves, and whether they are most of what is asked for; or null."""
    lost = unserved_range(sweep.stamp, judgement.rows["fill"].unique().to_list())
    if lost is None:
        return None
    return proposal_words.caveat_sentence("unserved_models", {"least": lost[0], "most": lost[1]})[0], lost[1] > HALF


def rests_on(sweep: Sweep, judgement: Judgement) -> list[tuple[str, str]]:
    """Return what stands on every result, as name and words: traffic, fleet, load, fill rules, days, what is made up."""
    stamp, rows = sweep.stamp, judgement.rows
    times = base_load_of(stamp)
    loads = sorted(rows["load"].unique().to_list())
    load = ", ".join(f"{value:g}" for value in loads) + (f" × the traffic laid over itself {times:g} times" if times != 1 else "")
    busy = sorted(rows["utilisation"].drop_nulls().unique().to_list())
    if busy:
        load += (
            f"; {ratio(busy[0])}"
            + (f" to {ratio(busy[-1])}" if ratio(busy[-1]) != ratio(busy[0]) else "")
            + " of what the fleet could make"
        )
    requests = int(rows.filter(pl.col("point") == rows["point"][0])["requests"].sum())
    which = made_up(stamp)
    told = [
        word
        for held, word in (
            (which, "" if which is None else MADE_UP[which]),
            (times * max(loads) > 1, "copies that make the load"),
            (stamp.get("reconstruction"), "a reconstruction from counts"),
        )
        if held
    ]
    found = [
        (
            "Traffic",
            f"{visible(str(stamp.get('trace', 'not named')))}: {count_of(requests, 'request')} a point, all scenarios together",
        ),
        ("Fleet", _fleet(stamp)),
        ("Load", load),
        ("Fill rule", _fills(stamp, rows)),
        (
            "Days",
            f"chosen on {days_words(judgement.chosen_days)}, held out: {days_words(judgement.holdout_days)}; "
            f"{short_days_words(judgement.short_days)}{judgement.seeds} seed{'s' if judgement.seeds > 1 else ''}",
        ),
    ]
    return [("Made up", ", ".join(told)), *found] if told else found


def _fills(stamp: Mapping[str, Any], rows: pl.DataFrame) -> str:
    fills = rows["fill"].unique().sort(nulls_last=False).to_list()
    # a trace that leaves something out, under no rule of the grid's, was filled by the rule that it names, or the usual one
    usual = "" if stamp.get("names_everything") else str(FillRule())
    named = str((stamp.get("traffic") or {}).get("fill", usual)) or fill_words(None)
    return "; ".join(visible(fill or named) for fill in fills)


def _fleet(stamp: Mapping[str, Any]) -> str:
    fleet = stamp.get("fleet") or {}
    try:
        return fleet_words(fleet) if set(fleet) >= _FLEET_NEEDS else "not named"
    except (TypeError, ValueError):  # a file may say anything
        return "not named"


# --- the point looked at -------------------------------------------------------------------------------------------------

COMPARED_COLUMNS: Final = (
    Column(key="metric", label="Figure", kind="name"),
    Column(key="now", label="In force", right=True, help="On the days chosen on, with the bounds of the 95 % interval."),
    Column(key="then", label="Looked at", right=True, help="The same for the settings looked at."),
    Column(
        key="apart", label="Difference", right=True, help="That of the deciding figure holds for all settings tried together."
    ),
    Column(key="verdict", label="Verdict"),
    Column(
        key="better", label="Better on", right=True, help="Days on which the settings looked at are better, of those chosen on."
    ),
    Column(key="held_now", label="In force, held out", right=True, help="On the days that had no say."),
    Column(key="held_then", label="Looked at, held out", right=True),
    Column(key="held_better", label="Better on, held out", right=True),
)


def compared_rows(judgement: Judgement, point: str) -> list[Row]:
    """Return one row a figure of the question: the point beside those in force, on both parts of the days."""
    rows = []
    for metric in judgement.question.metrics:
        c = judgement.comparison(point, metric)
        cells = {
            "metric": metric_words(metric),
            "now": with_bounds(metric, c.baseline, c.baseline_low, c.baseline_high),
            "then": with_bounds(metric, c.point, c.point_low, c.point_high),
            "apart": "none: the same settings"
            if point == judgement.baseline
            else difference_words(metric, c.difference, c.difference_half_width, c.baseline_low, c.baseline_high),
            "verdict": VERDICTS[c.verdict],
            "better": f"{c.better_days} of {len(judgement.chosen_days)}",
            "held_now": figure_words(metric, c.holdout_baseline),
            "held_then": figure_words(metric, c.holdout_point),
            "held_better": f"{c.holdout_better_days} of {len(judgement.holdout_days)}" if judgement.holdout_days else "no day",
        }
        rows.append(Row(id=metric.key, cells=cells))
    return rows


CHECK_COLUMNS: Final = (
    Column(key="constraint", label="Must hold", kind="name"),
    Column(key="value", label="Looked at", right=True),
    Column(key="limit", label="Bound", right=True),
    Column(key="met", label="Met in", right=True, help="Of the resamples of the days, the share in which it is met."),
    Column(key="held", label="On the days held out"),
)


def check_rows(proposal: Proposal) -> list[Row]:
    """Return one row a constraint: the figure of the settings looked at, the bound, and how surely it is met."""
    rows = []
    for place, check in enumerate(proposal.checks):
        metric = check.constraint.metric
        cells = {
            "constraint": constraint_words(check.constraint),
            "value": figure_words(metric, check.value),
            "limit": figure_words(metric, check.limit),
            "met": ratio(check.met_share),
            "held": "not known" if check.met_on_holdout is None else "met" if check.met_on_holdout else "not met",
        }
        rows.append(Row(id=str(place), cells=cells))
    return rows


SENSITIVITY_COLUMNS: Final = (
    Column(key="setting", label="Setting", kind="name", brief=""),
    Column(
        key="effect", label="Moves it by", right=True, help="From the lowest to the highest mean of its levels.", brief="moves by"
    ),
    Column(
        key="share",
        label="Share of all variation",
        right=True,
        help="What the setting makes alone, of all that differs between points.",
    ),
    Column(key="verdict", label="Verdict", brief=""),
)


def sensitivity_rows(judgement: Judgement) -> list[Row]:
    """Return one row a varied setting, the one that moves the deciding figure most first."""
    metric = judgement.question.objectives[0].metric
    rows = []
    for each in judgement.sensitivities:
        cells = {
            "setting": SETTING_WORDS[each.setting][0],
            "effect": effect_words(metric, each.effect, each.half_width),
            "share": ratio(each.share),
            "verdict": "within the noise" if each.within_noise else "beyond noise",
        }
        rows.append(Row(id=each.setting, cells=cells))
    return rows


# --- all points ----------------------------------------------------------------------------------------------------------


MOST_BRIEF: Final = 2
"""A card on a phone shows so many figures; the rest on demand."""

MOST_ROWS: Final = 300
"""So many points are listed, the best first; the file has all of them."""


def points_key(judgement: Judgement) -> str:
    """Return how the list of all points is read."""
    there = judgement.points.height
    listed = f"The best {count(MOST_ROWS)} of {count(there)}; the file has all" if there > MOST_ROWS else f"All {count(there)}"
    return (
        f"{listed}, the best first; the list scrolls. The settings stand in the order {_order(judgement)}, those that are not "
        "varied left out. ◆ in force · ★ proposed · ▣ looked at. A row opens its settings. On a phone each shows "
        f"{' and '.join(_briefly(judgement))}."
    )


def _briefly(judgement: Judgement) -> list[str]:
    return [metric.phrase for metric in judgement.question.metrics[:MOST_BRIEF]]


def _order(judgement: Judgement) -> str:
    return " · ".join(_heading(name).lower() for name in judgement.varied) or "as in force"


def point_columns(judgement: Judgement) -> list[Column]:
    """Return the columns of all points: settings, each figure on the days chosen on and held out, how sure they are."""
    figures = [
        column
        for number, metric in enumerate(judgement.question.metrics)
        for column in (
            Column(
                key=metric.key,
                label=metric_words(metric),
                right=True,
                help="On the days chosen on, with the bounds of the 95 % interval.",
                brief="" if number < MOST_BRIEF else None,
            ),
            Column(key=f"{metric.key}_holdout", label="Held out", right=True, help="The same on the days that had no say."),
        )
    ]
    return [
        Column(key="settings", label=_order(judgement).capitalize(), kind="name", brief=""),
        *figures,
        Column(key="feasible", label="Meets all", help="Whether it meets every constraint."),
        Column(key="front", label="Front", help="Whether it is on the front of the objectives."),
        Column(key="certainty", label="Best in", right=True, help="Of the resamples of the days, the share in which it is best."),
        Column(key="verdict", label="Verdict", help="The deciding figure against that of the settings in force.", wrap=True),
    ]


def point_rows(judgement: Judgement, marks: Mapping[str, str], queries: Mapping[str, str], shown: str) -> list[Row]:
    """Return the points in the order of ``queries``, at most :data:`MOST_ROWS`.

    Parameters
    ----------
    judgement
        What was judged.
    marks
        Point → what stands before its settings, as the mark of those in force.
    queries
        Point → the query of the page that looks at it, the best first.
    shown
        The one looked at, which is set off.
    """
    by_point = {row["point"]: row for row in judgement.points.iter_rows(named=True)}
    varied = judgement.varied
    rows = []
    for point, query in list(queries.items())[:MOST_ROWS]:
        row = by_point[point]
        values = " · ".join(setting_value(name, row[name]).removesuffix(" tokens") for name in varied)
        cells: dict[str, Any] = {"settings": f"{marks.get(point, '')} {values}".strip() or "as in force"}
        for metric in judgement.question.metrics:
            low, high = row[f"{metric.key}_low"], row[f"{metric.key}_high"]
            bounds = "" if low is None or high is None else one_or_range(figure_words(metric, low), figure_words(metric, high))
            cells[metric.key] = {"text": figure_words(metric, row[metric.key]), "sub": bounds}
            cells[f"{metric.key}_holdout"] = figure_words(metric, row[f"{metric.key}_holdout"])
        cells |= {
            "feasible": "yes" if row["feasible"] else "no",
            "front": "yes" if row["front"] else "no",
            "certainty": share_range_text(row["certainty"], row["certainty"]),
            "verdict": VERDICTS[row["verdict"]],
        }
        rows.append(Row(id=point, cells=cells, query=query, pinned=point == shown))
    return rows


def _heading(name: str) -> str:
    return SETTING_WORDS[name][0]
