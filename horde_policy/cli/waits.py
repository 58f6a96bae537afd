"""``waits``: were the estimates honest, and what did payers wait, from exported metrics (issue 4, A26–A28)."""

import math
import os
from typing import Annotated, Any

import typer

from horde_policy.cli.left_out import leave_if_any
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
from horde_policy.errors import InputError
from horde_policy.frames.decisions import REQUESTERS
from horde_policy.review.bounds import RATIO
from horde_policy.review.document import exported_document, plain, verdict_document
from horde_policy.review.exported import Exported
from horde_policy.review.findings import implied_mean_allowance
from horde_policy.review.sampling import Share
from horde_policy.review.verdict import ABOVE, OVER_S, Verdict, funded_verdict
from horde_policy.review.waits import distribution, mean_wait, of_kind, quantile, share_at_most
from horde_policy.settings import AllowanceSettings
from horde_policy.units import one_or_range
from horde_policy.views.finding_text import POPULATIONS_DIFFER, funded_details, funded_sentence, no_funded_text
from horde_policy.views.review_words import bounds_text, interval_text, quantile_text, share_text, word_text
from horde_policy.views.text import NOT_REPORTED, seconds, tokens

__all__ = ["AboveOption", "OverOption", "RatioOption", "ratio_of", "register"]

QUANTILES = (0.5, 0.9, 0.99)

OverOption = Annotated[
    float, typer.Option("--over", metavar="S", help="The mark of the question about funded waits, in seconds.")
]
AboveOption = Annotated[
    float, typer.Option("--above", metavar="SHARE", help="Is the share of funded waits over the mark above this?")
]
RatioOption = Annotated[
    str,
    typer.Option(
        "--ratio",
        metavar="R",
        help="At most so many times as many assignments has a request that held nothing as a funded one, or the other way round; "
        "any for not known.",
    ),
]
QuantileOption = Annotated[
    list[str] | None, typer.Option("--quantile", metavar="Q", help="Quantiles to tell, as 0.5,0.9; by default 0.5, 0.9 and 0.99.")
]


def register(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("waits")(waits)


def waits(
    files: FilesArgument = None,
    from_: FromOption = None,
    to: ToOption = None,
    over: OverOption = OVER_S,
    above: AboveOption = ABOVE,
    ratio: RatioOption = f"{RATIO:g}",
    quantiles: QuantileOption = None,
    history: HistoryOption = None,
    kept: KeptOption = None,
    mapping: MappingOption = None,
    settings: SettingsOption = None,
    set_: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Estimated against measured waits on the marks of the rule, by requester, and what can be known of funded waits."""
    wanted = _quantiles(quantiles)
    in_force = allowance_settings(os.environ, settings, set_)
    _, exported = load_both(files, mapping, from_, to, history=history, kept=kept)
    groups = [_group(exported, in_force, kind, requester, wanted) for kind, requester in _GROUPS]
    groups = [group for group in groups if group["n"] is not None]
    verdict = funded_verdict(exported.decisions, exported.waits, over_s=over, above=above, ratio=ratio_of(ratio))
    if as_json:
        print_json(_document(exported, in_force, groups, verdict))
    else:
        _print(exported, in_force, groups, verdict, wanted)
    leave_if_any(exported.problems, told=not as_json)


_GROUPS = (("estimated", None), ("queue", None), *(("queue", requester) for requester in REQUESTERS))


def _quantiles(given: list[str] | None) -> tuple[float, ...]:
    found = []
    for text in listed(given):
        try:
            share = float(text)
        except ValueError:
            share = math.nan
        if not 0 < share <= 1:
            raise InputError("--quantile", "", text, "must be a number above 0 and at most 1")
        found.append(share)
    return tuple(found) or QUANTILES


def ratio_of(text: str) -> float:
    """Return the ratio that an option names; ``any`` for one that is not known."""
    if text.strip() == "any":
        return math.inf
    try:
        return float(text)
    except ValueError:
        raise InputError("--ratio", "", text, "must be a number of at least 1, or any") from None


def _group(
    exported: Exported, settings: AllowanceSettings, kind: str, requester: str | None, wanted: tuple[float, ...]
) -> dict[str, Any]:
    own = of_kind(exported.waits, kind, requester)
    marks = (settings.wait_full_s, settings.wait_floor_s)
    shares_at = distribution(own, marks_s=marks)
    found = {share: quantile(shares_at, share) for share in wanted}
    at = {mark: share_at_most(own, mark) for mark in marks}
    first = at[settings.wait_full_s]
    return {
        "kind": kind,
        "requester": requester,
        "n": None if first is None else first.total,
        "mean_s": mean_wait(exported.wait_sums, kind, requester),
        "quantiles": found,
        "at_most": at,
        "distribution": shares_at,
    }


def _document(exported: Exported, settings: AllowanceSettings, groups: list[dict[str, Any]], verdict: Verdict) -> dict[str, Any]:
    mean = implied_mean_allowance(exported, settings)
    return {
        **exported_document(exported, settings),
        "waits": plain(groups),
        "mean_allowance_tokens": None if mean is None else plain(mean.tokens),
        "warning": POPULATIONS_DIFFER,
        "funded": verdict_document(verdict),
    }


def _print(
    exported: Exported,
    settings: AllowanceSettings,
    groups: list[dict[str, Any]],
    verdict: Verdict,
    wanted: tuple[float, ...],
) -> None:
    print_data(exported)
    full, floor = settings.wait_full_s, settings.wait_floor_s
    headings = [("waits", False), ("n", True), ("mean", True), *((f"{share:g}", True) for share in wanted)]
    headings += [(f"up to {seconds(full)}", True), ("95 %", True), (f"up to {seconds(floor)}", True), ("95 %", True)]
    print_rows(headings, [_row(group, wanted, full, floor) for group in groups])
    print(POPULATIONS_DIFFER)
    mean = implied_mean_allowance(exported, settings)
    if mean is not None:
        known = one_or_range(tokens(mean.tokens.low), tokens(mean.tokens.high))
        print(f"Mean allowance of requests with an eligible worker: {known} tokens.")
    print(no_funded_text(verdict) or funded_sentence(verdict))
    for detail in funded_details(verdict):
        print(f"  {detail}")


def _row(group: dict[str, Any], wanted: tuple[float, ...], full: float, floor: float) -> tuple[str, ...]:
    named = "estimated" if group["kind"] == "estimated" else "measured"
    who = "" if group["requester"] is None else f", {word_text('requester', group['requester'])}"
    mean = group["mean_s"]
    shares: list[Share | None] = [group["at_most"][full], group["at_most"][floor]]
    return (
        named + who,
        bounds_text(group["n"]),
        NOT_REPORTED if mean is None else one_or_range(seconds(mean.low), seconds(mean.high)),
        *(quantile_text(group["quantiles"][share]) for share in wanted),
        *(text for share in shares for text in (share_text(share), interval_text(share).removeprefix("95 %: "))),
    )
