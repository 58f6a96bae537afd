"""``decisions``: who got what, from exported metrics of any supported form (issue 4)."""

import os
import re
import sys
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

import polars as pl
import typer

from horde_policy.cli.left_out import leave_if_any
from horde_policy.cli.measure_table import console, safe
from horde_policy.cli.review_options import (
    FilesArgument,
    FromOption,
    HistoryOption,
    JsonOption,
    KeptOption,
    MappingOption,
    ToOption,
    listed,
    load_both,
    print_data,
    print_json,
    print_rows,
)
from horde_policy.cli.settings_option import SetOption, SettingsOption, allowance_settings
from horde_policy.errors import ConfigError, InputError
from horde_policy.review.cells import rule_counts, with_rules
from horde_policy.review.decompose import WORDS, check_dimensions, compare, decompose, filtered, shared
from horde_policy.review.document import exported_document, plain, what_if_document
from horde_policy.review.exported import Exported
from horde_policy.review.sampling import Bounds
from horde_policy.review.whatif import WhatIf, what_if
from horde_policy.settings import AllowanceSettings, settings_from_pairs
from horde_policy.views.exports import to_csv
from horde_policy.views.review_exports import decision_headings, stamp_of
from horde_policy.views.review_headlines import nothing_in_range
from horde_policy.views.review_tables import shared_text
from horde_policy.views.review_words import DIMENSION_WORDS, bounds_text, share_range_text, word_text
from horde_policy.views.text import NOT_REPORTED, count, ratio, signed_points

__all__ = ["register"]

_STEP = re.compile(r"([1-9][0-9]{0,4})(m|h|d)")
_STEP_UNITS = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1)}

ByOption = Annotated[
    list[str] | None,
    typer.Option(
        "--by", metavar="DIMENSIONS", help="Of " + ", ".join((*WORDS, "time")) + "; shares are within all but the last."
    ),
]
WhereOption = Annotated[
    list[str] | None,
    typer.Option(
        "--where", metavar="DIMENSION=WORD", help="Only these; several words of one dimension are alternatives, none is null."
    ),
]
StepOption = Annotated[str | None, typer.Option("--step", metavar="STEP", help="Of the time, as 15m, 1h or 1d; else fitting.")]
AgainstOption = Annotated[list[Path] | None, typer.Option("--against", metavar="FILE", help="Compare with these exports.")]
AgainstFromOption = Annotated[str | None, typer.Option("--against-from", metavar="T", help="Compare with the range from here.")]
AgainstToOption = Annotated[str | None, typer.Option("--against-to", metavar="T", help="Compare with the range up to here.")]
WhatIfOption = Annotated[
    list[str] | None,
    typer.Option("--what-if", metavar="NAME=VALUE", help="Another ceiling_tokens or floor_tokens, tried on the counts alone."),
]
CsvOption = Annotated[bool, typer.Option("--csv", help="Print CSV.")]


def register(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("decisions")(decisions)


def decisions(
    files: FilesArgument = None,
    by: ByOption = None,
    where: WhereOption = None,
    step: StepOption = None,
    from_: FromOption = None,
    to: ToOption = None,
    against: AgainstOption = None,
    against_from: AgainstFromOption = None,
    against_to: AgainstToOption = None,
    what_if_: WhatIfOption = None,
    history: HistoryOption = None,
    kept: KeptOption = None,
    mapping: MappingOption = None,
    settings: SettingsOption = None,
    set_: SetOption = None,
    as_json: JsonOption = False,
    as_csv: CsvOption = False,
) -> None:
    """Who got what: decisions counted in exported metrics by any of their dimensions, with shares and their intervals."""
    if as_json and as_csv:
        raise InputError("--csv", "", "--json --csv", "must be one of the two")
    dimensions = listed(by) or ["requester", "outcome"]
    check_dimensions(dimensions)
    keep, width = _words_kept(where), _step_of(step)
    in_force = allowance_settings(os.environ, settings, set_)
    changed = None if not what_if_ else _changed(in_force, what_if_)
    comparing = against is not None or against_from is not None or against_to is not None
    if comparing and "time" in dimensions:
        raise InputError("--by", "", "time", "has no place in a comparison")
    whole, exported = load_both(files, mapping, from_, to, history=history, kept=kept)
    nothing = nothing_in_range(whole, exported)
    own = filtered(exported.decisions, keep)
    other = _compared(against, files, mapping, against_from, against_to, history, kept) if comparing else None
    both = Bounds(0.0, 0.0) if other is None else shared(own, filtered(other.decisions, keep))
    if other is None:
        rows = decompose(own, dimensions, step=width, span=exported.span)
        rows = with_rules(rows, own, dimensions, in_force, step=width)
    else:
        rows = compare(own, filtered(other.decisions, keep), dimensions)
    answer = None if changed is None else what_if(own, in_force, changed)
    if as_json:
        print_json(_document(exported, in_force, dimensions, keep, rows, other, answer) | {"shared": plain(both)})
    elif as_csv:
        _print_csv(rows, dimensions, exported, in_force, keep, compared=other is not None)
    else:
        _print_tables(exported, dimensions, rows, other, answer)
        _print_rules(own, in_force)
    if nothing is not None and not as_json:
        print(nothing, file=sys.stderr if as_csv else sys.stdout)
    if not as_json and (text := shared_text(both)) is not None:
        print(f"note: {text}", file=sys.stderr)
    leave_if_any((*exported.problems, *(() if other is None else other.problems)), told=not (as_json or as_csv))


def _compared(
    against: list[Path] | None,
    files: list[Path] | None,
    mapping: Path | None,
    start: str | None,
    end: str | None,
    history: str | None,
    kept: str | None,
) -> Exported:
    """Return what is compared with: other files if they are given, else another range of the same."""
    if against:
        return load_both(against, mapping, start, end)[1]
    return load_both(files, mapping, start, end, history=history, kept=kept)[1]


def _words_kept(where: list[str] | None) -> dict[str, tuple[object, ...]]:
    kept: dict[str, tuple[object, ...]] = {}
    for text in listed(where):
        dimension, equals, word = (part.strip() for part in text.partition("="))
        if not equals or dimension not in WORDS:
            raise InputError("--where", "", text, "must have the form dimension=word, with one of " + ", ".join(WORDS))
        words = {str(known).lower() if isinstance(known, bool) else str(known): known for known in WORDS[dimension]}
        if word != "none" and word not in words:
            raise InputError("--where", dimension, word, "must be one of " + ", ".join([*words, "none"]))
        kept[dimension] = (*kept.get(dimension, ()), None if word == "none" else words[word])
    return kept


def _step_of(text: str | None) -> timedelta | None:
    if text is None:
        return None
    found = _STEP.fullmatch(text.strip())
    if found is None:
        raise InputError("--step", "", text, "must be a number of minutes, hours or days, as 15m, 1h or 1d")
    return int(found[1]) * _STEP_UNITS[found[2]]


def _changed(settings: AllowanceSettings, pairs: list[str]) -> AllowanceSettings:
    changed = settings_from_pairs(pairs, settings, option="--what-if")
    moved = {name for name in changed.differences() if getattr(changed, name) != getattr(settings, name)}
    if changed == settings or not moved <= {"ceiling_tokens", "floor_tokens"}:
        raise ConfigError(
            "--what-if", " ".join(pairs), "must change ceiling_tokens or floor_tokens: counts tell of no other setting"
        )
    return changed


def _document(
    exported: Exported,
    settings: AllowanceSettings,
    by: list[str],
    keep: dict[str, tuple[object, ...]],
    rows: pl.DataFrame,
    other: Exported | None,
    answer: WhatIf | None,
) -> dict[str, Any]:
    return {
        **exported_document(exported, settings),
        "by": by,
        "where": plain(keep),
        "rows": plain(rows),
        "against": None if other is None else exported_document(other, settings),
        "what_if": None if answer is None else what_if_document(answer) | {"rows": plain(answer.rows)},
    }


def _print_csv(
    rows: pl.DataFrame,
    by: list[str],
    exported: Exported,
    settings: AllowanceSettings,
    keep: dict[str, tuple[object, ...]],
    *,
    compared: bool,
) -> None:
    headings = {name: name for name in rows.columns} if compared else decision_headings(by)
    content = to_csv(rows, headings, stamp_of(exported, settings, keep))
    sys.stdout.write(content.decode("utf-8-sig").replace("\r\n", "\n"))


def _print_tables(exported: Exported, by: list[str], rows: pl.DataFrame, other: Exported | None, answer: WhatIf | None) -> None:
    print_data(exported)
    if other is not None:
        print("against")
        print_data(other)
        _print_comparison(rows, by)
    else:
        _print_counts(rows, by)
    if answer is not None:
        _print_what_if(answer)


def _dimension_headings(by: list[str]) -> list[tuple[str, bool]]:
    return [(DIMENSION_WORDS[name], False) for name in by]


def _print_counts(rows: pl.DataFrame, by: list[str]) -> None:
    judged = {"impossible_high": "cannot be", "special_high": "special case"}
    shown = [name for name in judged if float(rows[name].sum()) > 0]
    print_rows(
        [
            *_dimension_headings(by),
            *((word, True) for word in ("requests", "of", "share", "95 %")),
            *((judged[name], True) for name in shown),
        ],
        [
            (
                *(word_text(name, row[name]) for name in by),
                bounds_text(Bounds(row["count_low"], row["count_high"])),
                bounds_text(Bounds(row["n_low"], row["n_high"])),
                _share(row["share_low"], row["share_high"]),
                _share(row["sampling_low"], row["sampling_high"]),
                *(count(row[name]) if row[name] > 0 else "" for name in shown),
            )
            for row in rows.iter_rows(named=True)
        ],
    )


_LEVEL_WORDS = {"impossible": "cannot be", "special": "only a special case makes them"}


def _print_rules(decisions: pl.DataFrame, settings: AllowanceSettings) -> None:
    """Print how many of the decisions looked at the rule does not allow, or only in a special case, and why."""
    for row in rule_counts(decisions, settings).iter_rows(named=True):
        if row["level"] in _LEVEL_WORDS and row["count_high"] > 0:
            counted = bounds_text(Bounds(row["count_low"], row["count_high"]))
            console().print(safe(f"{counted} decisions: {_LEVEL_WORDS[row['level']]}: {row['text']}"), soft_wrap=True)


def _share(low: float | None, high: float | None) -> str:
    return NOT_REPORTED if low is None or high is None else share_range_text(low, high)


def _print_comparison(rows: pl.DataFrame, by: list[str]) -> None:
    def points(low: float | None, high: float | None) -> str:
        if low is None or high is None:
            return NOT_REPORTED
        return signed_points(low, high)

    print_rows(
        [
            *_dimension_headings(by),
            ("share", True),
            ("of", True),
            ("against", True),
            ("of", True),
            ("points", True),
            ("95 %", True),
        ],
        [
            (
                *(word_text(name, row[name]) for name in by),
                *(
                    text
                    for side in ("first", "second")
                    for text in (
                        _share(row[f"{side}_share_low"], row[f"{side}_share_high"]),
                        bounds_text(Bounds(row[f"{side}_n_low"], row[f"{side}_n_high"])),
                    )
                ),
                points(row["difference_low"], row["difference_high"]),
                points(row["sampling_difference_low"], row["sampling_difference_high"]),
            )
            for row in rows.iter_rows(named=True)
        ],
    )


def _print_what_if(answer: WhatIf) -> None:
    changed = answer.changed
    share = "nothing was counted" if answer.undecided_share is None else f"{ratio(answer.undecided_share)} undecided"
    print(f"\nwith ceiling {changed.ceiling_tokens:,} and floor {changed.floor_tokens:,}, waits as they were ({share}):")
    print_rows(
        [("outcome", False), ("counted", True), ("then", True)],
        [(name, bounds_text(answer.before[name]), bounds_text(after)) for name, after in answer.after.items()],
    )
