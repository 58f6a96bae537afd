"""A replay's figures, words, files and report, as data."""

import io
import json
import re
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from horde_policy.board.rows import make_board
from horde_policy.clock import FixedClock
from horde_policy.replay.engine import replay
from horde_policy.replay.fleets import fleet_from_snapshot
from horde_policy.replay.sent import sent_requests
from horde_policy.settings import AllowanceSettings, ReplaySettings
from horde_policy.sources.demo import DemoSource
from horde_policy.views.figures.replay import RUN_COLOURS, fig_allowance, fig_changes, fig_mix, fig_waits, marks_of
from horde_policy.views.figures.style import SURFACES, Mode
from horde_policy.views.replay_exports import ReplayStamp, figures_csv, figures_frame, requests_parquet
from horde_policy.views.replay_results import ALL_MODELS, Compared, Scored, compared, mix_shares, scored, share_waiting_at_most
from horde_policy.views.replay_runs import Run, run_text, runs_of, settings_words
from horde_policy.views.replay_words import (
    BASELINE_CELL,
    DIFFERENCE_COLUMNS,
    OF_ADMITTED,
    OVERLAPPING,
    RUN_COLUMNS,
    WAIT_COLUMNS,
    difference_rows,
    fleet_words,
    headline,
    leading,
    refused_anew_words,
    run_rows,
)
from horde_policy.views.report_replay import replay_report

AT = datetime(2026, 11, 29, 18, tzinfo=UTC)
HOSTILE = '</script><img src="http://elsewhere.example/x.png" onerror=alert(1)>=1+1'
Runs = tuple[tuple[Run, Scored], ...]


def traffic() -> pl.DataFrame:
    rows = 60
    return pl.DataFrame(
        {
            "request_id": [f"{HOSTILE}{n}" if n % 9 == 0 else str(n) for n in range(rows)],
            "created": [AT + timedelta(seconds=20 * n) for n in range(rows)],
            "models": [[HOSTILE] if n % 2 else [] for n in range(rows)],
            "requester": [("anonymous", "registered", "shared_key")[n % 3] for n in range(rows)],
            "max_length": [(80, 512, 1024, 4096)[n % 4] for n in range(rows)],
            "can_pay": [n % 5 == 0 for n in range(rows)],
            "allow_downgrade": [n % 7 == 0 for n in range(rows)],
            "recorded_outcome": ["free"] * rows,
        }
    )


def stamps(runs: Runs) -> ReplayStamp:
    made = {
        "trace": HOSTILE, "requests": 60, "superpose": 3, "thin": 1.0, "synthetic": False, "dated": True, "reconstruction": False,
        "fill": "max_length=ladder", "models_from": HOSTILE, "problems": [HOSTILE],
    }  # fmt: skip
    fleet = {"from": "snapshot", "source": HOSTILE, "synthetic": True, "workers": 1, "models": 1, "combined_speed_tok_per_s": 9.0}
    return ReplayStamp(traffic=made, fleet=fleet, runs=tuple(run for run, _ in runs))


@pytest.fixture(scope="module")
def world() -> tuple[Runs, dict[str, Compared], dict[str, pl.DataFrame]]:
    fleet = pl.DataFrame(
        {
            "worker_id": ["w"],
            "online_from": [AT],
            "models": [[HOSTILE]],
            "max_length": [4096],
            "max_context_length": [8192],
            "speed": [9.0],
        }
    )
    runs, notes = runs_of(["rule=everyone_free", "rule=old", "job_timeout_s=10"], AllowanceSettings())
    assert notes == ()
    sent = {r.letter: sent_requests(replay(traffic(), fleet, r.settings), traffic(), fleet, r.settings) for r in runs}
    scores = tuple((run, scored(sent[run.letter], traffic(), run.settings)) for run in runs)
    return scores, {run.letter: compared(sent["baseline"], sent[run.letter]) for run in runs[1:]}, sent


World = tuple[Runs, dict[str, Compared], dict[str, pl.DataFrame]]


def test_the_mix_of_every_group_adds_up_to_its_requests(world: World) -> None:
    for _, run in world[0]:
        total = 0
        for requester in ("anonymous", "registered", "shared_key"):
            shares = mix_shares(run, "requester", requester)
            total += sum(n for n, _ in shares.values())
            assert sum(share for _, share in shares.values()) == pytest.approx(1)
        assert total == run.summary["requests"]


def test_the_curve_of_waits_rises_to_the_share_that_started(world: World) -> None:
    for run, score in world[0]:
        curve = share_waiting_at_most(score)
        shares = [share for _, share in curve]
        assert shares == sorted(shares)
        sent = world[2][run.letter].filter(pl.col("outcome") != "refused")
        for wait in (0, 60, 300, 1200):
            assert dict(curve)[wait] == pytest.approx((sent["queue_wait_s"] <= wait).sum() / sent.height)
    assert share_waiting_at_most(world[0][1][1], outcome="refused") == []


def test_tables_and_figure_of_waits_say_whose_waits_they_are(world: World) -> None:
    of_started = {column.key for column in (*RUN_COLUMNS, *WAIT_COLUMNS) if column.unit == "of the started"}
    assert of_started == {"median", "p95", "full", "floor"}
    assert "waits are of the requests that started" in OVERLAPPING
    assert "Those that never started are among them" in OF_ADMITTED
    assert "admitted" in fig_waits(world[0], requester=None, outcome=None, mode="light").layout.yaxis.title.text


def test_a_run_that_refuses_more_than_fare_worse_says_why(world: World) -> None:
    scores, changes, sent = world
    told = {letter: refused_anew_words(letter, change) for letter, change in changes.items()}
    before = sent["baseline"].filter(pl.col("attempt") == 1)
    for letter, words in told.items():
        after = sent[letter].filter(pl.col("attempt") == 1)
        anew = ((after["outcome"] == "refused") & (before["outcome"] != "refused")).sum()
        assert changes[letter].figures["refused_anew"] == anew
        assert (words is None) == (changes[letter].figures["refused_anew_served"] == anew)
        if words is not None:
            assert words.startswith(f"{letter} refuses {anew:,} requests that the baseline admitted.")
    assert run_rows(scores, changes)[0].cells["worse"] == BASELINE_CELL, "no cell is blank"


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_the_figures_draw_what_the_runs_say(world: World, mode: Mode) -> None:
    scores, changes, _ = world
    mix = fig_mix(scores, "requester", mode)
    assert [trace.name for trace in mix.data] == ["free", "funded", "downgraded", "refused"]
    assert [sum(t.x[n] for t in mix.data) for n in range(12)] == pytest.approx([100] * 12)
    sizes = fig_mix(scores, "requested_size", mode).data[0].y[0]
    assert "513 to 1,024" in sizes, "sizes are written as everywhere"
    waits = fig_waits(scores, requester=None, outcome=None, mode=mode)
    assert waits.layout.yaxis.title.text == "share of the admitted started within it (%)"
    assert [trace.name for trace in waits.data] == ["baseline", "B", "C", "D"]
    assert {note.text for note in waits.layout.annotations} == {"full wait 60 s", "floor wait 300 s"}
    allowance = fig_allowance(scores, ALL_MODELS, dated=True, mode=mode)
    assert [trace.name for trace in allowance.data] == ["baseline", "C", "D"], "everyone free has no allowance"
    assert allowance.layout.xaxis.title.text == "time (UTC)"
    undated = fig_allowance(scores, ALL_MODELS, dated=False, mode=mode)
    assert undated.data[0].x[0] == 0
    gains = fig_changes(changes, mode)
    for trace in gains.data:
        for letter, share in zip(trace.y, trace.x, strict=True):
            figures = changes[letter].figures
            assert abs(share) == pytest.approx(100 * figures["changes"][trace.name] / figures["requests"])


@pytest.mark.parametrize(
    ("runs", "opened", "expected"),
    [
        (["ceiling_tokens=2048"], "B", ["full wait 60 s", "floor wait 300 s"]),
        (["wait_floor_s=150"], "B", ["full wait 60 s", "baseline: floor wait 300 s", "B: floor wait 150 s"]),
        (["wait_floor_s=150"], "", ["full wait 60 s", "baseline: floor wait 300 s"]),
        (["wait_floor_s=150", "wait_full_s=30"], "C", [
            "baseline: full wait 60 s", "C: full wait 30 s", "baseline: floor wait 300 s",
        ]),
        (["rule=old"], "B", ["full wait 60 s", "floor wait 300 s"]),
        (["rule=old", "wait_floor_s=150"], "B", ["full wait 60 s", "baseline: floor wait 300 s"]),
    ],
)  # fmt: skip
def test_the_marks_are_those_of_the_baseline_and_of_the_settings_opened_and_say_whose(
    runs: list[str], opened: str, expected: list[str]
) -> None:
    made, _ = runs_of(runs, AllowanceSettings())
    assert [text for text, _, _ in marks_of(made, opened)] == expected


def test_nothing_to_draw_is_an_empty_figure_and_no_fault() -> None:
    assert all(not trace.x for trace in fig_mix((), "requester", "light").data)
    for figure in (fig_waits((), requester=None, outcome=None, mode="light"), fig_changes({}, "dark")):
        assert len(figure.data) == 0
    assert len(fig_allowance((), "m", dated=True, mode="light").data) == 0


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_the_lines_stand_out_from_the_page(mode: Mode) -> None:
    page = luminance(SURFACES[mode][0])
    for colour in RUN_COLOURS[mode]:
        high, low = max(page, luminance(colour)), min(page, luminance(colour))
        assert (high + 0.05) / (low + 0.05) >= 3


def test_a_hostile_model_is_escaped_in_its_figure(world: World) -> None:
    figure = fig_allowance(world[0], HOSTILE, dated=True, mode="light")
    assert len(figure.data) == 3
    assert "<img" not in json.dumps(figure.to_plotly_json()["layout"], default=str)


def test_the_rows_of_the_runs_and_the_headline(world: World) -> None:
    scores, changes, _ = world
    rows = {row.id: row.cells for row in run_rows(scores, changes)}
    assert list(rows) == [run.digest for run, _ in scores]
    assert rows[scores[1][0].digest]["free"] == "100 %"
    assert "of 60 requests fare worse than under the baseline" in headline(scores, changes)
    words = next(run.words for run, _ in scores if run.letter == leading(changes))
    assert headline(scores, changes).startswith(f"{leading(changes)} ({words}) differs most: ")
    alone = {leading(changes): changes[leading(changes)]}
    assert headline(scores, alone).startswith(f"With {words}, "), "one alone need not be told from others"
    assert headline(scores[:1], {}).startswith("Of 60 requests the baseline refuses ")
    for change in changes.values():
        ids = [row.id for row in difference_rows(change)]
        assert len(ids) == len(set(ids))


# --- files --------------------------------------------------------------------------------------------------------------


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def test_the_report_holds_everything_and_fetches_nothing(world: World) -> None:
    scores, changes, _ = world
    text = replay_report(scores, changes, stamps(scores), made_at=AT, model=HOSTILE).decode()
    tags = Tags()
    tags.feed(text)
    assert not [tag for tag, _ in tags.found if tag in ("img", "link", "iframe", "object")]
    assert not [attrs for _, attrs in tags.found if {"src", "href", "onerror"} & set(attrs)]
    policy = [attrs["content"] for tag, attrs in tags.found if tag == "meta" and "http-equiv" in attrs]
    assert policy == ["default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data: blob:"]
    plain = re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)
    assert "elsewhere.example/x.png&quot;" in plain
    assert "3 copies superposed (synthetic load)" in plain
    assert "max_length=ladder" in plain
    for run, _ in scores:
        assert run.digest in plain
    assert text.count('class="plotly-graph-div"') == 5


def test_the_figures_as_csv_are_those_of_the_runs_and_hold_no_formula(world: World) -> None:
    scores, changes, _ = world
    frame = figures_frame(scores, changes)
    requests = frame.filter((pl.col("figure") == "requests") & pl.col("requester").is_null())
    assert requests["value"].to_list() == [60.0, 60.0, 60.0, 60.0]
    by_mix = (
        frame.filter((pl.col("figure") == "requests") & pl.col("requester").is_not_null())
        .group_by("run")
        .agg(pl.col("value").sum())
    )
    assert set(by_mix["value"]) == {60.0}
    read = pl.read_csv(io.BytesIO(figures_csv(scores, changes, stamps(scores))), infer_schema=False)
    assert read.height == frame.height
    assert set(read["fill rule"]) == {"max_length=ladder"}
    assert all(trace.startswith("</script>") and trace.endswith("(synthetic load)") for trace in read["traffic"])


def test_the_requests_as_parquet_are_every_request_of_every_run(world: World) -> None:
    scores, _, sent = world
    data = requests_parquet(sent, stamps(scores))
    read = pl.read_parquet(io.BytesIO(data))
    assert dict(read.group_by("run").len().iter_rows()) == dict.fromkeys(("baseline", "B", "C", "D"), 60)
    stamp = json.loads(pl.read_parquet_metadata(io.BytesIO(data))["horde_policy"])
    assert [run["settings"] for run in stamp["runs"]] == [run.digest for run, _ in scores]
    assert re.fullmatch(r"[A-Za-z0-9_-]+", stamps(scores).name)


# --- settings in an address ---------------------------------------------------------------------------------------------


@given(
    st.builds(
        ReplaySettings,
        ceiling_tokens=st.integers(1000, 16384),
        floor_tokens=st.integers(1, 1000),
        wait_full_s=st.floats(0, 100).map(lambda s: round(s, 3)),
        wait_floor_s=st.floats(101, 1000).map(lambda s: round(s, 3)),
        rule=st.sampled_from(["allowance", "old", "jobs", "everyone_free", "no_one_free"]),
        client=st.sampled_from(["leave", "resend", "return"]),
        ahead=st.sampled_from(["queue_order", "all"]),
        count_threads=st.booleans(),
        job_timeout_s=st.none() | st.integers(0, 500).map(float),
    )
)
def test_settings_are_written_and_read_the_same(settings: ReplaySettings) -> None:
    base = ReplaySettings()
    text = run_text(settings, base)
    runs, notes = runs_of([text] if text else [], AllowanceSettings())
    if settings == base:
        assert len(runs) == 1
        return
    assert notes == ()
    assert runs[1].settings == settings
    assert settings_words(settings, base)


def test_a_fleet_says_who_of_the_listed_workers_is_left_out() -> None:
    snapshot = DemoSource(FixedClock(AT)).load()
    fleet, board = fleet_from_snapshot(snapshot), make_board(snapshot, AllowanceSettings())
    text = fleet_words(fleet.stamp)
    speed = board.pulse.speed_tok_per_s - 10  # one open worker of assumed speed serves no model
    assert (
        f"{board.pulse.open_workers - 1} workers, 21 models, {speed:.0f} tok/s together; of 34 listed 5 left out: 3 in " in text
    )
    assert "1 no models reported" in text
    assert "left out" not in fleet_words({**fleet.stamp, "left_out": {}})
    assert "left out" not in fleet_words({**fleet.stamp, "left_out": HOSTILE})


def test_a_card_of_a_difference_says_what_differs_and_the_rest_on_demand() -> None:
    assert [column.key for column in DIFFERENCE_COLUMNS if column.brief is not None] == [
        "request", "what", "tokens", "answer",
    ]  # fmt: skip
