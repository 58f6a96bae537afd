"""The Waits page's parts: both distributions, quantiles, requesters, the funded wait between its bounds, and the verdict."""

import math
from collections.abc import Mapping

import polars as pl
import streamlit as st

from horde_policy.frames.decisions import REQUESTERS
from horde_policy.review.exported import Exported
from horde_policy.review.findings import implied_mean_allowance
from horde_policy.review.verdict import Verdict, funded_verdict
from horde_policy.review.waits import distribution, mean_wait, of_kind, quantile, share_at_most
from horde_policy.settings import AllowanceSettings
from horde_policy.ui import address
from horde_policy.ui.charts import show_figure, theme_mode
from horde_policy.ui.fields import number_field
from horde_policy.ui.headings import show_heading
from horde_policy.ui.review_page import Opened, offer, show_nothing
from horde_policy.ui.tables import show_grid
from horde_policy.units import one_or_range
from horde_policy.views import review_tables as tables
from horde_policy.views.exports import to_csv
from horde_policy.views.figures.review_waits import distributions_alt, fig_distributions, fig_funded, funded_alt
from horde_policy.views.finding_text import POPULATIONS_DIFFER, funded_details, funded_sentence, no_funded_text, point_warning
from horde_policy.views.review_exports import file_name, stamp_of
from horde_policy.views.review_state import MOST_RATIO, MOST_SECONDS
from horde_policy.views.review_words import word_text
from horde_policy.views.text import escape_markdown, tokens

__all__ = ["show_estimates", "show_funded", "show_other", "show_requesters"]

QUANTILES = (0.5, 0.9, 0.99)
RATIOS = (1.0, 1.5, 2.0, 3.0, 5.0, 10.0, math.inf)


def group(
    exported: Exported, settings: AllowanceSettings, kind: str, requester: str | None, name: str
) -> tables.WaitGroup | None:
    """Return the figures of the waits of one kind and requester; null if none was counted."""
    own = of_kind(exported.waits, kind, requester)
    marks = (settings.wait_full_s, settings.wait_floor_s)
    at_most = {mark: share_at_most(own, mark) for mark in marks}
    first = at_most[settings.wait_full_s]
    if first is None:
        return None
    shares = distribution(own, marks_s=marks)
    return tables.WaitGroup(
        name=name,
        n=first.total,
        mean_s=mean_wait(exported.wait_sums, kind, requester),
        quantiles={share: quantile(shares, share) for share in QUANTILES},
        at_most=at_most,
        distribution=shares,
    )


def groups(exported: Exported, settings: AllowanceSettings, looked_at: tuple[str, ...]) -> dict[str, tables.WaitGroup]:
    """Return the groups that have waits: all estimated, all measured, and measured by requester, as far as they are looked at."""
    whos = [word for word in REQUESTERS if not looked_at or word in looked_at]
    wanted: list[tuple[str, str, str | None]] = [("estimated", "estimated", None), ("measured", "queue", None)]
    wanted += [(word_text("requester", who), "queue", who) for who in whos]
    found = {name: group(exported, settings, kind, who, name) for name, kind, who in wanted}
    return {name: one for name, one in found.items() if one is not None}


def show_estimates(opened: Opened) -> dict[str, tables.WaitGroup]:
    """Show estimated and measured waits on one axis with the marks, and the table of all groups; return the groups."""
    found = groups(opened.exported, opened.settings, opened.state.requester)
    show_heading("Estimated against measured")
    both = {name: one.distribution for name, one in found.items() if name in ("estimated", "measured")}
    if not both:
        show_nothing(opened, 0.0, "waits")
        return found
    show_figure(
        fig_distributions(both, opened.settings, theme_mode()),
        alt=distributions_alt(both, opened.settings),
        key=f"waits.both-{opened.key}",
    )
    st.caption(f"Whiskers: the 95 % interval. {POPULATIONS_DIFFER}")
    for name, series in (("estimated", "estimated waits"), ("measured", "measured queue waits")):
        if name not in found:
            st.info(f"The exports hold no {series}, so only one of the two is drawn.", icon=":material/do_not_disturb_on:")
    return found


def show_requesters(opened: Opened, found: Mapping[str, tables.WaitGroup]) -> None:
    """Show measured waits by requester, whose marks filter everything, and the figures of all groups."""
    by_name = {word_text("requester", who): who for who in REQUESTERS}
    by_requester = {name: found[name].distribution for name in by_name if name in found}
    if by_requester:
        show_heading("Measured, by requester")
        names = list(by_requester)
        figure = fig_distributions(by_requester, opened.settings, theme_mode())
        for trace, name in zip(figure.data, names, strict=True):
            trace.customdata = [(*cell, by_name[name]) for cell in trace.customdata]
        figure.update_layout(clickmode="event+select")
        show_figure(
            figure,
            alt=distributions_alt(by_requester, opened.settings),
            key=f"waits.requesters-{opened.key}",
            on_mark=lambda mark: address.write_review(address.read_review().toggled("requester", mark[2])),
        )
        st.caption("Whiskers: the 95 % interval. Click a mark to look at that requester alone, on every page of the review.")
    elif "measured" in found:
        st.info("The exported queue waits do not say whose they are.", icon=":material/do_not_disturb_on:")
    if not found:
        return
    marks = (opened.settings.wait_full_s, opened.settings.wait_floor_s)
    show_grid(
        tables.wait_columns(QUANTILES, marks),
        tables.wait_rows(list(found.values())),
        key="waits.table",
        alt="Waits by kind and requester: number, mean, quantiles as bucket bounds, shares up to the marks with intervals",
    )
    mean = implied_mean_allowance(opened.exported, opened.settings)
    if mean is not None:
        known = one_or_range(tokens(mean.tokens.low), tokens(mean.tokens.high))
        st.caption(f"Mean allowance of requests with an eligible worker, as the estimated waits imply it: {known} tokens.")
    stamp = stamp_of(opened.exported, opened.settings, {"requester": opened.state.keep.get("requester", ())})
    rows = pl.concat([one.distribution.select(pl.lit(name).alias("waits"), pl.all()) for name, one in found.items()])
    offer(
        "Distributions (CSV)",
        lambda: to_csv(rows, tables.WAIT_HEADINGS, stamp),
        file_name("waits", stamp, "csv"),
        "text/csv",
        key="waits.csv",
        text="Every edge of every distribution with its share and interval; data, range and settings stand in each row.",
    )


def show_other(opened: Opened) -> None:
    """Show the waits beside those that they are compared with; nothing where nothing is compared."""
    if opened.other is None:
        return
    show_heading("Compared")
    sides = {"first side": opened.exported, "second side": opened.other}
    st.caption("  \n".join(f"**{name.capitalize()}** {escape_markdown(tables.side_text(side))}" for name, side in sides.items()))
    made = {
        f"{word}, {name}": group(side, opened.settings, kind, None, f"{word}, {name}")
        for word, kind in (("estimated", "estimated"), ("measured", "queue"))
        for name, side in sides.items()
    }
    known = {name: one for name, one in made.items() if one is not None}
    if not known:
        st.info("Neither side holds waits.", icon=":material/do_not_disturb_on:")
        return
    shares = {name: one.distribution for name, one in known.items()}
    show_figure(
        fig_distributions(shares, opened.settings, theme_mode()),
        alt=distributions_alt(shares, opened.settings),
        key=f"waits.compared-{opened.key}",
    )
    marks = (opened.settings.wait_full_s, opened.settings.wait_floor_s)
    show_grid(
        tables.wait_columns(QUANTILES, marks),
        tables.wait_rows(list(known.values())),
        key="waits.compared-table",
        alt="Waits of both sides: number, mean, quantiles as bucket bounds, shares up to the marks with intervals",
    )


# --- the funded wait ----------------------------------------------------------------------------------------------------------


def verdict_of(opened: Opened) -> Verdict:
    """Return the answer to the question about funded waits that the address asks."""
    state = opened.state
    return funded_verdict(
        opened.exported.decisions, opened.exported.waits, over_s=state.over_s, above=state.above, ratio=state.ratio
    )


def show_funded(opened: Opened) -> None:
    """Show the question about funded waits, its answer, and the bounds that it rests on."""
    show_heading("What did funded requests wait, and is a per-request record needed?")
    st.caption(
        "Queue waits do not say whether kudos were held. All that is certain of funded ones are bounds, from the waits of "
        "registered requesters and from how many of their assignments held nothing. Registered requesters only."
    )
    _ask(opened)
    verdict = verdict_of(opened)
    hidden = no_funded_text(verdict)
    if hidden is not None:
        st.info(hidden, icon=":material/visibility_off:")
        return
    kind = {"yes": st.warning, "no": st.success}.get(verdict.answer, st.info)
    kind(escape_markdown(funded_sentence(verdict)), icon=":material/gavel:")
    st.markdown("\n".join(f"- {escape_markdown(line)}" for line in funded_details(verdict)))
    if not verdict.funded.rows.height:
        return
    point = st.toggle(
        "Draw the point estimate too",
        key="waits.point",
        help="If free registered requests waited like anonymous ones. In a known week it said 0.91 where the truth was 0.51.",
    )
    show_figure(
        fig_funded(verdict.funded, opened.settings, theme_mode(), point=point),
        alt=funded_alt(verdict.funded, opened.settings),
        key=f"waits.funded-{point}-{opened.key}",
    )
    st.caption(
        "The line of funded waits lies somewhere in the band; its paler part is what sampling adds (95 %). Where the band "
        "reaches from 0 to 100 these counts tell nothing of them."
    )
    if point:
        st.warning(escape_markdown(point_warning(verdict)), icon=":material/warning:")


def _ask(opened: Opened) -> None:
    state = opened.state
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.markdown("Is the share of funded waits")
        over = "waits.over"
        address.seed(over, float(state.over_s))
        number_field(
            "over (s)",
            0.0,
            MOST_SECONDS,
            step=30.0,
            format="%g",
            key=over,
            on_change=_write,
            args=("over_s", over, 1.0),
            width=150,
        )
        above = "waits.above"
        address.seed(above, round(state.above * 100, 7))
        number_field(
            "above (%)", 0.0, 99.9, step=1.0, format="%g", key=above, on_change=_write, args=("above", above, 0.01), width=150
        )
        ratio = "waits.ratio"
        address.seed(ratio, state.ratio)
        st.selectbox(
            "if decisions and assignments differ by a factor of at most",
            sorted({*RATIOS, min(state.ratio, MOST_RATIO) if math.isfinite(state.ratio) else math.inf}),
            format_func=lambda value: "any" if math.isinf(value) else f"{value:g}",
            key=ratio,
            on_change=_write,
            args=("ratio", ratio, 1.0),
            help="How many times as many assignments a request that held nothing has as a funded one, or the other way round, at "
            "most: several answers, retries, expiry. Counts do not tell it.",
            width=330,
        )


def _write(field: str, key: str, factor: float) -> None:
    value = float(st.session_state[key]) * factor
    address.write_review(address.read_review().changed(**{field: value if math.isinf(value) else round(value, 9)}))
