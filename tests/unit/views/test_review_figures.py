"""The review's figures as data."""

import math
from datetime import datetime, timedelta

import polars as pl
import pytest

from horde_policy.frames.decisions import OUTCOMES, SIZES
from horde_policy.review.annotations import Annotation
from horde_policy.review.bounds import funded_waits
from horde_policy.review.cells import size_grid
from horde_policy.review.decompose import compare, decompose
from horde_policy.review.findings import review_week
from horde_policy.review.quiet import Quiet
from horde_policy.review.waits import distribution, of_kind
from horde_policy.review.whatif import what_if
from horde_policy.settings import AllowanceSettings
from horde_policy.views.figures.contrast import contrast
from horde_policy.views.figures.review_decisions import (
    fig_bars,
    fig_comparison,
    fig_over_time,
    fig_size_grid,
    grid_alt,
    longest_bar,
)
from horde_policy.views.figures.review_waits import distributions_alt, fig_distributions, fig_funded, funded_alt
from horde_policy.views.figures.review_whatif import fig_gains, fig_what_if, gains, gains_alt, what_if_alt
from horde_policy.views.figures.style import OUTCOME_PATTERNS, SURFACES, Mode
from horde_policy.views.figures.style import OUTCOMES as OUTCOME_COLOURS
from horde_policy.views.review_tables import quiet_notes
from tests.unit.review.made import MONDAY, decision, decisions, histogram, hour, waits
from tests.unit.review.weeks import made_week

DEFAULT = AllowanceSettings()
WEEK = made_week()
MODES: tuple[Mode, ...] = ("light", "dark")
HOSTILE = "<img src=x onerror=alert(1)> $x$"


@pytest.mark.parametrize("mode", MODES)
def test_over_time_the_bars_add_up_to_the_counts(mode: Mode) -> None:
    cells = decompose(WEEK.decisions, ["time", "outcome"])
    figure = fig_over_time(cells, "outcome", mode, notes=(Annotation(MONDAY, HOSTILE),))
    assert [trace.name for trace in figure.data] == list(OUTCOMES)
    for trace in figure.data:
        own = WEEK.decisions.filter(pl.col("outcome") == trace.name)
        assert sum(trace.y) == own["count_low"].sum()
        assert trace.marker.color == OUTCOME_COLOURS[mode][trace.name]
        assert trace.marker.pattern.shape == OUTCOME_PATTERNS[trace.name]
        assert len(trace.x) == 168
        assert trace.offset == 0
        assert trace.width == 3_600_000
        assert {word for _, word, _ in trace.customdata} == {trace.name}
        assert [datetime.fromisoformat(at) for at, _, _ in trace.customdata] == list(trace.x)
    assert figure.layout.xaxis.title.text == "time (UTC)"
    assert figure.layout.yaxis.title.text == "decisions in each hour"
    note = figure.layout.annotations[-1].text
    assert "<img" not in note
    assert "&lt;img" in note


def test_no_legend_and_no_mark_lies_on_the_data() -> None:
    """Legends stand in room of their own below the plot, labels of the marks in rows of their own above it."""
    estimated = distribution(of_kind(WEEK.waits, "estimated"))
    of_waits = [
        fig_distributions({"estimated": estimated, "measured": estimated}, DEFAULT, "light"),
        fig_funded(funded_waits(WEEK.decisions, WEEK.waits), DEFAULT, "light", point=True),
    ]
    of_counts = [
        fig_bars(decompose(WEEK.decisions, ["requester", "outcome"]), "requester", "outcome", "light"),
        fig_over_time(decompose(WEEK.decisions, ["time", "outcome"]), "outcome", "light"),
        fig_what_if(what_if(WEEK.decisions, DEFAULT, DEFAULT.changed(floor_tokens=1024)), "light"),
    ]
    for figure in (*of_waits, *of_counts):
        legend = figure.layout.legend
        assert figure.layout.showlegend
        assert (legend.yref, legend.y, legend.yanchor) == ("container", 0, "bottom")
    for figure in of_waits:
        full, floor = figure.layout.annotations
        assert (full.y, full.yanchor, floor.y, floor.yanchor) == (1, "bottom", 1, "bottom")
        assert full.yshift >= floor.yshift + 12
        assert figure.layout.margin.t >= full.yshift + 12


def test_over_time_without_a_colour_is_one_bar_a_step() -> None:
    figure = fig_over_time(decompose(WEEK.decisions, ["time"], step=timedelta(days=1)), "", "light")
    assert [sum(trace.y) for trace in figure.data] == [2016]
    assert fig_over_time(decompose(decisions(), ["time", "outcome"]), "outcome", "light").data == ()


def test_a_step_without_decisions_is_a_ring_where_it_is_covered_and_grey_where_it_is_not() -> None:
    rows = decisions(decision(5) | hour(0), decision(5) | hour(3))
    quiet = Quiet(timedelta(hours=1), 4, zero=(MONDAY + timedelta(hours=1),), uncovered=(MONDAY + timedelta(hours=2),))
    figure = fig_over_time(decompose(rows, ["time"]), "", "light", quiet=quiet)
    assert (figure.data[-1].name, list(figure.data[-1].x)) == ("0 decisions", [MONDAY + timedelta(hours=1.5)])
    assert [shape.x0 for shape in figure.layout.shapes] == [MONDAY + timedelta(hours=2)]
    zeros, lost = quiet_notes(quiet)
    assert "though the exports cover the time: 0 decisions in 1 of 4 steps of an hour" in zeros
    assert "no export covers this time" in lost


@pytest.mark.parametrize("mode", MODES)
def test_bars_are_shares_of_their_row_and_say_what_a_click_means(mode: Mode) -> None:
    cells = decompose(WEEK.decisions, ["requested_size", "outcome"])
    figure = fig_bars(cells, "requested_size", "outcome", mode)
    rows: dict[str, float] = {}
    for trace in figure.data:
        for row, length in zip(trace.y, trace.x, strict=True):
            rows[row] = rows.get(row, 0.0) + length
        assert {word for _, word, _ in trace.customdata} == {trace.name}
        assert {size for size, _, _ in trace.customdata} <= set(SIZES)
        assert trace.marker.pattern.shape == OUTCOME_PATTERNS[trace.name]
    assert rows == {row: pytest.approx(100) for row in rows}
    assert len(rows) == len(SIZES)
    first = figure.data[0].customdata[0][2]
    assert "95 %" in first


def test_bars_without_a_colour_are_counts() -> None:
    figure = fig_bars(decompose(WEEK.decisions, ["requester"]), "requester", "", "light")
    assert [list(trace.x) for trace in figure.data] == [decompose(WEEK.decisions, ["requester"])["count_low"].to_list()]


def test_panels_of_counts_have_one_scale_and_their_counts_at_the_bars() -> None:
    frame = decisions(decision(600), decision(30, requester="shared_key"), decision(20, requester="registered", chat=None))
    cells = decompose(frame, ["requester", "chat", "outcome"])
    most = longest_bar(cells, ["requester", "chat"])
    panels = [fig_bars(part, "chat", "outcome", "light", shares=False, most=most) for part in cells.partition_by("requester")]
    assert {panel.layout.xaxis.range for panel in panels} == {(0, 720.0)}
    assert sorted(text for panel in panels for trace in panel.data for text in trace.text) == ["20", "30", "600"]
    shares = fig_bars(cells.filter(pl.col("requester") == "shared_key"), "chat", "outcome", "light", most=most)
    assert shares.layout.xaxis.range is None, "shares have a scale of their own"


def test_words_that_were_not_exported_have_a_bar_too() -> None:
    frame = decisions(decision(3), decision(4, outcome=None), decision(5, chat=None))
    figure = fig_bars(decompose(frame, ["chat", "outcome"]), "chat", "outcome", "light")
    assert [trace.name for trace in figure.data] == ["free", "not exported or unknown"]
    assert "not exported or unknown" in figure.data[0].y


@pytest.mark.parametrize("mode", MODES)
def test_the_grid_marks_what_cannot_be_and_a_click_gives_both_sizes(mode: Mode) -> None:
    broken = decision(40, requested_size=">4096", allowance_size="<=512")
    grid = size_grid(pl.concat([WEEK.decisions, decisions(broken)]), DEFAULT)
    figure = fig_size_grid(grid, mode)
    (trace,) = figure.data
    assert len(trace.customdata) == 25
    cells = {(asked, allowed): number for number, (asked, allowed, _) in enumerate(trace.customdata)}
    assert set(cells) == {(asked, allowed) for asked in SIZES for allowed in SIZES}
    impossible = cells["<=512", ">4096"]
    assert trace.text[impossible] == "×"
    assert "cannot be" in trace.customdata[impossible][2]
    counted = cells[">4096", "<=512"]
    assert trace.text[counted].endswith("%")
    assert trace.marker.line.width[counted] == 3
    assert "a request over the allowance is not free" in trace.customdata[counted][2]
    assert trace.marker.line.width[cells["<=512", "2049-4096"]] == 1
    assert "not decided" in trace.customdata[cells["1025-2048", "1025-2048"]][2]
    assert trace.text[cells["1025-2048", "1025-2048"]].endswith("%<br>?"), "a share and its mark have a line each"
    # further from the page for more
    strengths = [contrast(colour, SURFACES[mode][0]) for colour in trace.marker.color]
    counts = grid["count_high"].to_list()
    by_count = [strengths[n] for n in sorted(range(25), key=lambda n: counts[n])]
    assert by_count == sorted(by_count)
    assert by_count[0] < by_count[12] < by_count[-1]
    at = WEEK.decisions.filter((pl.col("requested_size") == ">4096") & (pl.col("allowance_size") == "<=512"))
    beside = round(float(at["count_low"].sum()))
    assert grid_alt(grid) == (
        f"Requested size against allowance: 2,056 decisions; {40 + beside} lie in cells that the rule does not allow."
    )


def test_an_empty_grid_still_has_its_cells() -> None:
    figure = fig_size_grid(size_grid(decisions(), DEFAULT), "light")
    assert len(figure.data[0].customdata) == 25
    assert set(figure.data[0].text) == {"×", "0"}, "no cell is blank"


def test_uncertain_cells_are_not_drawn_as_exact() -> None:
    grid = size_grid(decisions(decision(3, 9)), DEFAULT)
    figure = fig_size_grid(grid, "light")
    assert "±" in figure.data[0].text
    assert any("3 to 9 decisions" in hover for _, _, hover in figure.data[0].customdata)


def test_a_comparison_shows_each_difference_with_its_interval() -> None:
    cells = compare(made_week(hours=24).decisions, WEEK.decisions, ["outcome"])
    figure = fig_comparison(cells, ["outcome"], "light", names=("Monday", HOSTILE))
    (trace,) = figure.data
    assert list(trace.y) == list(OUTCOMES)
    for row, at, up, down in zip(
        cells.iter_rows(named=True), trace.x, trace.error_x.array, trace.error_x.arrayminus, strict=True
    ):
        assert at == pytest.approx(100 * row["difference_low"])
        assert at + up == pytest.approx(100 * row["sampling_difference_high"])
        assert at - down == pytest.approx(100 * row["sampling_difference_low"])
    assert [word for word, _ in trace.customdata] == list(OUTCOMES)
    assert "<img" not in trace.customdata[0][1]


@pytest.mark.parametrize("mode", MODES)
def test_distributions_stand_on_one_axis_with_the_marks(mode: Mode) -> None:
    kinds = {HOSTILE: distribution(of_kind(WEEK.waits, "estimated")), "measured": distribution(of_kind(WEEK.waits, "queue"))}
    figure = fig_distributions(kinds, DEFAULT, mode)
    assert [note.text for note in figure.layout.annotations] == ["full wait 60 s", "floor wait 300 s"]
    ticks = dict(zip(figure.layout.xaxis.tickvals, figure.layout.xaxis.ticktext, strict=True))
    assert [ticks[shape.x0] for shape in figure.layout.shapes] == ["60", "300"]
    assert "<img" not in figure.data[0].name
    for trace, rows in zip(figure.data, kinds.values(), strict=True):
        shares = {
            math.sqrt(edge): (low + high) / 2 for edge, low, high in rows.select("edge_s", "share_low", "share_high").iter_rows()
        }
        for edge, height in zip(trace.x, trace.y, strict=True):
            assert height == pytest.approx(100 * shares[edge])
        assert {math.sqrt(60), math.sqrt(300)} <= set(trace.x)
    assert figure.data[0].line.dash != figure.data[1].line.dash
    assert distributions_alt(kinds, DEFAULT).count("within 300 s") == 2


def test_waits_beyond_the_axis_are_told() -> None:
    far = {"measured": distribution(waits(*histogram([10.0] * 60 + [5000.0] * 40)))}
    figure = fig_distributions(far, DEFAULT, "light")
    assert "40.0 % longer than" in figure.data[0].name
    assert fig_distributions({"none": distribution(waits())}, DEFAULT, "light").data == ()
    assert distributions_alt({"none": distribution(waits())}, DEFAULT).endswith("none without counts.")


def test_the_funded_band_holds_its_bounds() -> None:
    funded = funded_waits(WEEK.decisions, WEEK.waits, ratio=1.0)
    figure = fig_funded(funded, DEFAULT, "light", point=True)
    names = [trace.name for trace in figure.data]
    assert names[:4] == ["funded, with sampling, at least", "funded, with sampling", "funded, at least", "funded"]
    assert names[4:] == ["all registered", "if free ones waited like anonymous ones (may be far off)"]
    low, high = figure.data[2], figure.data[3]
    assert list(low.x) == list(high.x)
    assert all(least <= most for least, most in zip(low.y, high.y, strict=True))
    assert high.fill == "tonexty"
    row = funded.rows.row(by_predicate=pl.col("edge_s") == 300, named=True)
    assert low.y[list(low.x).index(math.sqrt(300))] == pytest.approx(100 * row["funded_low"])
    assert "300 s" in funded_alt(funded, DEFAULT)
    without = fig_funded(funded, DEFAULT, "light")
    assert "anonymous" not in "".join(trace.name for trace in without.data)


def test_a_funded_wait_that_is_not_visible_has_no_band() -> None:
    hidden = funded_waits(decisions(decision(5)), waits(*histogram([1.0])))
    figure = fig_funded(hidden, DEFAULT, "light")
    assert all(len(trace.x or ()) == 0 for trace in figure.data)
    assert funded_alt(hidden, DEFAULT) == "The funded wait is not visible in these counts."


def test_a_what_if_shows_what_is_certain_and_what_may_be() -> None:
    answer = what_if(WEEK.decisions, DEFAULT, AllowanceSettings(ceiling_tokens=2048))
    figure = fig_what_if(answer, "light")
    certain, possible, now = figure.data
    assert list(certain.y) == list(OUTCOMES)
    for outcome, sure, perhaps, was in zip(certain.y, certain.x, possible.x, now.x, strict=True):
        assert sure == answer.after[outcome].low
        assert sure + perhaps == answer.after[outcome].high
        assert was == answer.before[outcome].low
    assert "not decided" in what_if_alt(answer)


def test_gains_name_every_change_and_size() -> None:
    answers = review_week(WEEK, DEFAULT).what_ifs
    found = gains(answers)
    figure = fig_gains(answers, "light")
    (trace,) = figure.data
    assert len(trace.x) == len(found) == len(answers) * len(SIZES)
    free = WEEK.decisions.filter((pl.col("outcome") == "free") & (pl.col("requested_size") == "2049-4096"))
    _, lost = found["ceiling_tokens=2048", "2049-4096"]
    assert lost.low == lost.high == free["count_low"].sum()
    more, none_lost = found["floor_tokens=1024", "513-1024"]
    assert more.low > 0
    assert none_lost.high == 0
    assert "floor 4,096" in list(trace.y)
    assert "requests of" in gains_alt(answers)


def test_nothing_ceases_to_be_free_by_more_however_badly_a_count_is_known() -> None:
    free = decision(0, 400, outcome="free", requested_size="<=512", allowance_size="2049-4096")
    answers = {"floor_tokens=1024": what_if(decisions(free), DEFAULT, AllowanceSettings(floor_tokens=1024))}
    assert {lost.high for _, lost in gains(answers).values()} == {0.0}
    assert {text for trace in fig_gains(answers, "light").data for text in trace.text} == {"0"}
