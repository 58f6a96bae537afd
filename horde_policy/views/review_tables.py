"""The review's tables as rows for the page: counted decisions, waits by group, files, and what of them was not understood."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import polars as pl

from horde_policy.errors import Problem
from horde_policy.review.exported import Exported
from horde_policy.review.quiet import Quiet
from horde_policy.review.sampling import Bounds, Share
from horde_policy.review.waits import Quantile
from horde_policy.review.whatif import WhatIf
from horde_policy.units import one_or_range
from horde_policy.views.grid import Column, Row, name_cell
from horde_policy.views.review_words import (
    DIMENSION_WORDS,
    bounds_text,
    interval_text,
    quantile_text,
    quiet_text,
    share_range_text,
    share_text,
    span_text,
    word_text,
)
from horde_policy.views.text import NOT_REPORTED, count, instant, seconds, shortened, shortened_name, signed_points

__all__ = [
    "FILE_COLUMNS",
    "LEFT_COLUMNS",
    "MOST_ROWS",
    "PROBLEM_COLUMNS",
    "RULE_COLUMNS",
    "WAIT_HEADINGS",
    "WHAT_IF_COLUMNS",
    "WaitGroup",
    "comparison_columns",
    "comparison_rows",
    "decision_columns",
    "decision_rows",
    "file_rows",
    "form_text",
    "left_count",
    "left_rows",
    "left_text",
    "problem_rows",
    "quiet_notes",
    "rule_rows",
    "shared_text",
    "side_text",
    "understood_text",
    "wait_columns",
    "wait_rows",
    "what_if_rows",
]

FORM_TEXTS: Final = {
    "exposition": "Prometheus text",
    "prometheus_json": "Prometheus API answer",
    "otlp_json": "OTLP JSON",
    "otlp_proto": "OTLP protobuf",
    "grafana_csv": "Grafana CSV",
    "parquet": "our Parquet",
}

MOST_ROWS = 400
"""So many lines of what was not understood are listed; the rest is counted in a last one."""


def form_text(form: str) -> str:
    """Return a form of export as people call it.

    >>> form_text("otlp_json")
    'OTLP JSON'
    """
    return FORM_TEXTS.get(form, form)


# --- what was read ----------------------------------------------------------------------------------------------------------


def understood_text(exported: Exported) -> str:
    """Return what files were understood as, in one line.

    >>> from horde_policy.imports.read import read_exports
    >>> from horde_policy.review.exported import exported_from
    >>> understood_text(exported_from(read_exports(b'horde_text_free_allowance_decisions{horde_outcome="free"} 5 1790000000000')))
    'Prometheus text: 1 sample, 5 decisions, 0 waits'
    """
    forms = ", ".join(dict.fromkeys(form_text(file.form) for file in exported.files)) or "nothing"
    samples = sum(file.samples for file in exported.files)
    waits = Bounds(float(exported.waits["count_low"].sum()), float(exported.waits["count_high"].sum()))
    named = f"{count(samples)} sample{'' if samples == 1 else 's'}"
    return f"{forms}: {named}, {bounds_text(exported.counted)} decisions, {bounds_text(waits)} waits"


def left_count(exported: Exported) -> int:
    """Return how many samples, lines or records were left out."""
    return sum(file.skipped for file in exported.files)


def left_text(exported: Exported) -> str:
    r"""Return how much was not understood, in one line: what was left out, words that are none of the rule's, unknown labels.

    >>> from horde_policy.imports.read import read_exports
    >>> from horde_policy.review.exported import exported_from
    >>> text = b'horde_text_free_allowance_decisions{horde_outcome="x",colour="b"} 5 1790000000000\nup 1 1790000000000\n'
    >>> left_text(exported_from(read_exports(text)))
    '1 sample, line or record was left out, 1 sample has a word that is none of the rule, 1 label is not known'
    """
    files = () if exported.report is None else exported.report.files
    found = (
        (left_count(exported), "sample, line or record was left out", "samples, lines or records were left out"),
        (
            sum(word.count for file in files for word in file.words),
            "sample has a word that is none of the rule",
            "samples have words that are none of the rule",
        ),
        (len({label for file in files for label in file.labels}), "label is not known", "labels are not known"),
    )
    told = [f"{count(many)} {one if many == 1 else more}" for many, one, more in found if many]
    return ", ".join(told) or "everything was understood"


FILE_COLUMNS: Final = (
    Column(key="file", label="File", kind="name"),
    Column(key="form", label="Understood as"),
    Column(key="samples", label="Samples", right=True, help="Values of the three series of the allowance."),
    Column(key="left", label="Left out", right=True, help="Samples, lines or records that were not used; listed below."),
    Column(key="first", label="First look", unit="UTC"),
    Column(key="last", label="Last look", unit="UTC"),
)


def file_rows(exported: Exported) -> list[Row]:
    """Return one row a file."""
    packed = {} if exported.report is None else {number: file.packing for number, file in enumerate(exported.report.files)}
    return [
        Row(
            id=str(number),
            cells={
                "file": name_cell(shortened_name(file.name, 120)),
                "form": ", ".join([form_text(file.form), *packed.get(number, ())]),
                "samples": count(file.samples),
                "left": count(file.skipped),
                "first": NOT_REPORTED if file.first is None else instant(file.first).removesuffix(" UTC"),
                "last": NOT_REPORTED if file.last is None else instant(file.last).removesuffix(" UTC"),
            },
        )
        for number, file in enumerate(exported.files)
    ]


LEFT_COLUMNS: Final = (
    Column(key="subject", label="What", kind="name"),
    Column(key="reason", label="Why it was left out", wrap=True, wide=True),
    Column(key="count", label="How many", right=True),
    Column(key="file", label="File", kind="name"),
)


def left_rows(exported: Exported) -> list[Row]:
    """Return what was not understood, most first: samples left out, words that are none of the rule's, labels beyond those known.

    Beyond :data:`MOST_ROWS` a last row counts the rest.
    """
    found: list[tuple[int, str, str, str]] = []
    for file in () if exported.report is None else exported.report.files:
        found += [(left.count, left.subject, left.reason, file.name) for left in file.skipped]
        found += [
            (word.count, word.subject, f"is no word of the rule for {DIMENSION_WORDS.get(word.reason, word.reason)}", file.name)
            for word in file.words
        ]
        found += [(values, label, "a label beyond those known; its values are added up", file.name) for label, values in
                  file.labels.items()]  # fmt: skip
    found.sort(key=lambda one: (-one[0], one[1:]))
    rest = found[MOST_ROWS:]
    shown = found[:MOST_ROWS] + ([(sum(one[0] for one in rest), f"{count(len(rest))} more", "", "")] if rest else [])
    return [
        Row(
            id=str(number),
            cells={
                "subject": name_cell(shortened(subject, 120)),
                "reason": reason,
                "count": count(how_many),
                "file": name_cell(shortened_name(name, 80)) if name else "",
            },
        )
        for number, (how_many, subject, reason, name) in enumerate(shown)
    ]


PROBLEM_COLUMNS: Final = (
    Column(key="subject", label="Where", kind="name"),
    Column(key="level", label="Level"),
    Column(key="text", label="What was found", wrap=True, wide=True),
)


def problem_rows(problems: Sequence[Problem]) -> list[Row]:
    """Return what is wrong in the data, which stay usable."""
    return [
        Row(
            id=str(number),
            cells={
                "subject": name_cell(shortened(problem.subject, 120)),
                "level": problem.level,
                "text": name_cell(problem.text),
            },
        )
        for number, problem in enumerate(problems)
    ]


# --- decisions --------------------------------------------------------------------------------------------------------------


def decision_columns(by: Sequence[str]) -> list[Column]:
    """Return the columns of counted decisions."""
    within = ", ".join(DIMENSION_WORDS[name] for name in by[:-1])
    of = f"Of the requests with the same {within}." if within else "Of all that are looked at."
    return [
        *(Column(key=name, label=DIMENSION_WORDS[name].capitalize()) for name in by),
        Column(key="count", label="Requests", right=True),
        Column(key="share", label="Share", right=True, help=f"{of} Exact where the counts are."),
        Column(key="interval", label="95 % interval", right=True, help="How far off another range of the same kind could be."),
        Column(key="n", label="n", right=True, help=f"Sample size of the share. {of}"),
    ]


def decision_rows(cells: pl.DataFrame, by: Sequence[str]) -> list[Row]:
    """Return the rows of counted decisions, from :func:`~horde_policy.review.decompose.decompose`."""
    return [
        Row(
            id=str(number),
            cells={name: word_text(name, row[name]) for name in by}
            | {
                "count": _counted(row, "count"),
                "share": _shared(row, "share"),
                "interval": _shared(row, "sampling"),
                "n": _counted(row, "n"),
            },
        )
        for number, row in enumerate(cells.iter_rows(named=True))
    ]


def _counted(row: Mapping[str, Any], what: str) -> str:
    return bounds_text(Bounds(row[f"{what}_low"], row[f"{what}_high"]))


def _shared(row: Mapping[str, Any], what: str) -> str:
    low, high = row[f"{what}_low"], row[f"{what}_high"]
    return NOT_REPORTED if low is None or high is None else share_range_text(low, high)


def quiet_notes(quiet: Quiet | None) -> list[str]:
    """Return what stands below decisions over time of the steps without any: the zeros, and what no export covers."""
    if quiet is None:
        return []
    zeros = f"○ Nothing of what is looked at was counted, though the exports cover the time: {quiet_text(quiet)}"
    lost = "Grey: no export covers this time, so what was counted then is not known."
    return [note for note, steps in ((zeros, quiet.zero), (lost, quiet.uncovered)) if steps]


def comparison_columns(by: Sequence[str], names: tuple[str, str]) -> list[Column]:
    """Return the columns of a comparison; the names of its sides are plain words."""
    sides = [
        column
        for side, name in zip(("first", "second"), names, strict=True)
        for column in (
            Column(key=f"{side}_share", label=f"Share, {name}", right=True),
            Column(key=f"{side}_n", label=f"n, {name}", right=True),
        )
    ]
    return [
        *(Column(key=name, label=DIMENSION_WORDS[name].capitalize()) for name in by),
        *sides,
        Column(key="difference", label="Difference", unit="percentage points", right=True),
        Column(key="interval", label="95 % interval", right=True, help="If it holds zero, the two may be the same."),
    ]


def comparison_rows(cells: pl.DataFrame, by: Sequence[str]) -> list[Row]:
    """Return the rows of a comparison, from :func:`~horde_policy.review.decompose.compare`."""
    return [
        Row(
            id=str(number),
            cells={name: word_text(name, row[name]) for name in by}
            | {f"{side}_share": _shared(row, f"{side}_share") for side in ("first", "second")}
            | {f"{side}_n": _counted(row, f"{side}_n") for side in ("first", "second")}
            | {"difference": _points(row, "difference"), "interval": _points(row, "sampling_difference")},
        )
        for number, row in enumerate(cells.iter_rows(named=True))
    ]


def _points(row: Mapping[str, Any], what: str) -> str:
    low, high = row[f"{what}_low"], row[f"{what}_high"]
    if low is None or high is None:
        return NOT_REPORTED
    return signed_points(low, high)


# --- waits ------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitGroup:
    """The waits of one kind and requester as figures: n, mean, quantiles, shares up to the marks, distribution."""

    name: str
    n: Bounds
    mean_s: Bounds | None
    quantiles: Mapping[float, Quantile | None]
    at_most: Mapping[float, Share | None]
    distribution: pl.DataFrame


def wait_columns(quantiles: Sequence[float], marks_s: Sequence[float]) -> list[Column]:
    """Return the columns of waits by group."""
    edges = "Known as the bounds of a bucket."
    return [
        Column(key="group", label="Waits"),
        Column(key="n", label="n", right=True),
        Column(key="mean", label="Mean", right=True),
        *(Column(key=f"q{share:g}", label=f"{share * 100:g} % wait no more than", right=True, help=edges) for share in quantiles),
        *(
            column
            for mark in marks_s
            for column in (
                Column(key=f"at{mark:g}", label=f"Up to {seconds(mark)}", right=True),
                Column(key=f"in{mark:g}", label="95 % interval", right=True),
            )
        ),
    ]


def wait_rows(groups: Sequence[WaitGroup]) -> list[Row]:
    """Return one row a group of waits."""
    rows = []
    for group in groups:
        mean = group.mean_s
        known = NOT_REPORTED if mean is None else one_or_range(seconds(mean.low), seconds(mean.high))
        cells = {"group": group.name, "n": bounds_text(group.n), "mean": known}
        cells |= {f"q{share:g}": quantile_text(found) for share, found in group.quantiles.items()}
        for mark, share_at in group.at_most.items():
            cells |= {f"at{mark:g}": share_text(share_at), f"in{mark:g}": interval_text(share_at).removeprefix("95 %: ")}
        rows.append(Row(id=group.name, cells=cells))
    return rows


# --- what the rule says, and what-ifs ---------------------------------------------------------------------------------------

LEVEL_TEXTS: Final = {"impossible": "cannot be", "special": "only a special case", "undecided": "not decided"}

RULE_COLUMNS: Final = (
    Column(key="level", label="Cell"),
    Column(key="count", label="Requests", right=True),
    Column(key="text", label="Why", wrap=True, wide=True),
)


def rule_rows(rules: pl.DataFrame) -> list[Row]:
    """Return what the rule says of counted cells, from :func:`~horde_policy.review.cells.rule_counts`."""
    return [
        Row(
            id=str(number),
            cells={"level": LEVEL_TEXTS[row["level"]], "count": _counted(row, "count"), "text": {"text": row["text"]}},
        )
        for number, row in enumerate(rules.iter_rows(named=True))
    ]


WHAT_IF_COLUMNS: Final = (
    Column(key="outcome", label="Outcome"),
    Column(key="before", label="Counted", right=True),
    Column(key="after", label="Then", right=True, help="An exact count where bucket edges decide, else the bounds of it."),
)


def what_if_rows(answer: WhatIf) -> list[Row]:
    """Return each outcome as counted and under the changed settings, and how many requests are undecided."""
    rows = [
        Row(id=name, cells={"outcome": name, "before": bounds_text(answer.before[name]), "after": bounds_text(after)})
        for name, after in answer.after.items()
    ]
    undecided = {"outcome": "not decided by the buckets", "before": NOT_REPORTED, "after": bounds_text(answer.undecided)}
    return [*rows, Row(id="undecided", cells=undecided)]


def shared_text(both: Bounds) -> str | None:
    """Return what it means that both sides of a comparison hold the same decisions; null where they do not.

    >>> shared_text(Bounds(23_046, 23_046))
    '23,046 decisions are on both sides, so the sides are not independent: the intervals of the differences do not hold'
    """
    if both.high <= 0:
        return None
    are = "decision is" if both == Bounds(1, 1) else "decisions are"
    return (
        f"{bounds_text(both)} {are} on both sides, so the sides are not independent: the intervals of the differences do not hold"
    )


def side_text(exported: Exported) -> str:
    """Return one side of a comparison in a line: its title (hostile text), how many decisions, of when."""
    made_up = " (synthetic)" if exported.synthetic else ""
    return f"{exported.title}{made_up}: {bounds_text(exported.counted)} decisions, {span_text(exported.covered)}"


WAIT_HEADINGS: Final = {
    "waits": "waits",
    "edge_s": "up to (s)",
    "count_low": "at least (waits)",
    "count_high": "at most (waits)",
    "share_low": "share at least",
    "share_high": "share at most",
    "sampling_low": "95 % interval from",
    "sampling_high": "95 % interval to",
    "design_effect": "design effect",
}
"""Column of exported distributions → heading."""
