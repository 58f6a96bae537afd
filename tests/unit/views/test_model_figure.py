import pytest

from horde_policy.board.detail import SizeStep
from horde_policy.board.states import AllowanceRange
from horde_policy.policy.allowance import free_output_allowance
from horde_policy.settings import AllowanceSettings
from horde_policy.views.figures.model import CurvePoint, add_other_rules, add_trail, add_tried, curve_alt, fig_curve
from horde_policy.views.figures.sizes import add_rules_over_sizes, fig_sizes
from horde_policy.views.figures.style import STATE_COLOURS, SURFACES, Mode
from horde_policy.views.text import seconds

SETTINGS = AllowanceSettings()
RANGE = AllowanceRange(named=512, at_high=512, at_low=512)


@pytest.mark.parametrize("mode", ["light", "dark"])
@pytest.mark.parametrize("named_s", [0.0, 60.0, 179.5, 300.0, 550.0])
def test_the_live_point_stands_on_the_curve(named_s: float, mode: Mode) -> None:
    figure = fig_curve(SETTINGS, state="falling", low_s=0.0, named_s=named_s, high_s=None, mode=mode)
    curve, point = figure.data
    assert (point.x[0], point.y[0]) == (named_s, free_output_allowance(named_s, SETTINGS))
    assert point.marker.color == STATE_COLOURS[mode]["falling"]
    assert [(x, y) for x, y in zip(curve.x, curve.y, strict=True) if x in (60.0, 300.0)] == [(60.0, 4096), (300.0, 512)]


def test_the_range_reaches_from_the_low_to_the_high_scenario_over_the_corners() -> None:
    figure = fig_curve(SETTINGS, state="full", low_s=0.0, named_s=10.0, high_s=320.0, mode="light")
    span = next(trace for trace in figure.data if trace.name == "low to at worst")
    assert list(span.x) == [0.0, 60.0, 300.0, 320.0]
    assert list(span.y) == [4096, 4096, 512, 512]


@pytest.mark.parametrize("high_s", [1e4, 1e9, float("inf")])
def test_what_lies_beyond_the_axis_is_said_at_its_edge(high_s: float) -> None:
    figure = fig_curve(SETTINGS, state="floor", low_s=0.0, named_s=high_s, high_s=high_s, mode="light")
    end = figure.layout.xaxis.range[1]
    assert end == 600.0
    assert all(max(trace.x) <= end for trace in figure.data)
    texts = [note.text for note in figure.layout.annotations]
    assert sum(text.endswith("→") for text in texts) == 2


def test_without_a_wait_there_is_the_curve_alone_and_the_sentence_says_so() -> None:
    figure = fig_curve(SETTINGS, state="unknown", low_s=None, named_s=None, high_s=None, mode="dark")
    assert [trace.name for trace in figure.data] == ["allowance"]
    assert "no live point" in curve_alt(SETTINGS, None, None)


def test_the_axes_carry_their_units() -> None:
    figure = fig_curve(SETTINGS, state="full", low_s=0.0, named_s=1.0, high_s=2.0, mode="light")
    assert figure.layout.xaxis.title.text == "estimated wait (s)"
    assert figure.layout.yaxis.title.text == "free output allowance (tokens)"


def test_the_sentence_names_both_figures() -> None:
    assert curve_alt(SETTINGS, 21.0, 112.4) == (
        "Free output allowance over estimated wait: at the named wait of 21 s it is 4,096 tokens; at worst, at 112 s, 3,313."
    )


@pytest.mark.parametrize("levels", [(512, 512), (512, 2602), (256, 4096), (None, 512), (400, None)])
def test_the_other_rules_lie_beneath_and_are_named_where_nothing_can_stand_across_them(
    levels: tuple[int | None, int | None],
) -> None:
    old, jobs = levels
    curve = fig_curve(SETTINGS, state="falling", low_s=0.0, named_s=180.0, high_s=3000.0, mode="light")
    step = SizeStep(
        from_tokens=1,
        to_tokens=512,
        state="floor",
        eligible_workers=1,
        speed_tok_per_s=1.0,
        waits=None,
        allowance=RANGE,
        largest_free_tokens=512,
    )
    sizes = fig_sizes([step], SETTINGS, end_tokens=4260.0, largest_free_tokens=512, mode="light")
    labels = [len(figure.layout.annotations) for figure in (curve, sizes)]
    add_other_rules(curve, old, jobs, "light")
    add_rules_over_sizes(sizes, [step], [jobs], old, "light")
    known = sum(level is not None for level in levels)
    for figure, before in zip((curve, sizes), labels, strict=True):
        assert len(figure.layout.annotations) == before, "no word is printed over the plot"
        assert all(trace.showlegend and "rule" in trace.name for trace in figure.data[:known]), "drawn first, so beneath the rest"
        assert not any("rule" in trace.name for trace in figure.data[known:])
        assert figure.layout.legend.yref == "container", "named below the plot"


def test_a_trail_stays_out_of_the_legend() -> None:
    curve = fig_curve(SETTINGS, state="falling", low_s=0.0, named_s=180.0, high_s=None, mode="light")
    add_other_rules(curve, 512, 512, "light")
    add_trail(curve, SETTINGS, [20.0, 200.0], "light")
    assert [trace.name for trace in curve.data if trace.showlegend is not False] == ["jobs rule: 512", "previous rule: 512"]


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_the_rings_of_a_trail_are_seen_on_the_thick_part_and_leave_the_live_point_free(mode: Mode) -> None:
    curve = fig_curve(SETTINGS, state="falling", low_s=0.0, named_s=180.0, high_s=400.0, mode=mode)
    add_trail(curve, SETTINGS, [20.0, 180.0], mode)
    names = [trace.name for trace in curve.data]
    assert names == ["allowance", "low to at worst", "over the range", "now"]
    band, rings = curve.data[1], curve.data[2]
    assert rings.marker.line.color != band.line.color
    assert rings.opacity is None, "a faint ring is lost in the band"


@pytest.mark.parametrize("old_tokens", [512, 1024])
@pytest.mark.parametrize("jobs_tokens", [512, 600, 700, 800, 900, 2304])
def test_no_level_of_a_rule_strikes_the_words_of_the_worst_wait_through(old_tokens: int, jobs_tokens: int) -> None:
    curve = fig_curve(SETTINGS, state="falling", low_s=0.0, named_s=180.0, high_s=3_400.0, mode="light")
    add_other_rules(curve, old_tokens, jobs_tokens, "light")
    (words,) = [note for note in curve.layout.annotations if note.name == "at worst"]
    margin = curve.layout.margin
    px_per_token = (curve.layout.height - margin.t - margin.b) / curve.layout.yaxis.range[1]
    for level in (old_tokens, jobs_tokens):
        above_px = (level - words.y) * px_per_token
        assert above_px <= words.yshift - 3 or above_px >= words.yshift + 16, "the line lies within the words"


@pytest.mark.parametrize("others", [True, False])
@pytest.mark.parametrize(
    ("now_s", "then_s", "floor", "above", "below"),
    [
        (512.0, 512.0, 1024, "then", "now"),
        (512.0, 100.0, 512, "then", "now"),
        (100.0, 512.0, 512, "now", "then"),
        (10.0, 10.0, 512, "then", "now"),
        (5000.0, 5000.0, 512, "then", "now"),
    ],
)
def test_now_and_then_belong_to_their_points(
    now_s: float, then_s: float, floor: int, above: str, below: str, *, others: bool
) -> None:
    tried = SETTINGS.changed(floor_tokens=floor)
    curve = fig_curve(SETTINGS, state="floor", low_s=0.0, named_s=now_s, high_s=7_860.0, mode="light")
    if others:
        add_other_rules(curve, 512, 512, "light")
    add_tried(curve, tried, CurvePoint(then_s, "floor"), "light", now=(now_s, 7_860.0))
    notes = {note.name: note for note in curve.layout.annotations if note.name}
    assert set(notes) == {"now", "then"}, "no figure stands beside a point that may be another's"
    traces = {trace.name.partition(":")[0]: trace for trace in curve.data if trace.mode == "markers"}
    for name, side, sign in ((above, "bottom", 1), (below, "top", -1)):
        note = notes[name]
        assert (note.x, note.y) == (traces[name].x[0], traces[name].y[0]), "the word stands at its own point"
        assert (note.yanchor, note.yshift * sign > 0) == (side, True), "and on the side where the other point is not"
    listed = [trace.name for trace in curve.data if trace.showlegend]
    assert f"now: {free_output_allowance(now_s, SETTINGS):,} tokens at {seconds(now_s)}" in listed
    assert f"then: {free_output_allowance(then_s, tried):,} tokens at {seconds(then_s)}" in listed
    assert "low to at worst, 2 h 11 min" in listed
    assert sum("rule" in name for name in listed) == 2 * others
    alt = curve_alt(SETTINGS, now_s, None, tried=tried, then_s=then_s)
    assert alt.endswith(f"; as tried {free_output_allowance(then_s, tried):,} tokens at {seconds(then_s)}.")


@pytest.mark.parametrize(("full_s", "side"), [(60.0, "right"), (250.0, "left")])
def test_the_marks_labels_stay_within_the_plot_and_no_line_goes_through_the_words(full_s: float, side: str) -> None:
    settings = AllowanceSettings(wait_full_s=full_s)
    figure = fig_curve(settings, state="full", low_s=0.0, named_s=10.0, high_s=None, mode="dark")
    notes = {note.text: note for note in figure.layout.annotations}
    assert notes["floor wait 300 s"].xanchor == side, "before its line where there is room"
    assert notes[f"full wait {full_s:.0f} s"].xanchor == "left"
    assert notes[f"full wait {full_s:.0f} s"].yshift > (notes["floor wait 300 s"].yshift or 0), (
        "a row for each: none stands on the other"
    )
    now = next(note for text, note in notes.items() if "now" in text)
    assert now.bgcolor == SURFACES["dark"][0]
