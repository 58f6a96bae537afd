from pathlib import Path

import pytest

from horde_policy.board.detail import ModelDetail, model_detail
from horde_policy.board.pool import Fleet
from horde_policy.settings import AllowanceSettings
from horde_policy.sources.demo import DEMO_FOLDER
from horde_policy.sources.recorded import load_recorded
from horde_policy.views.figures.sizes import add_rules_over_sizes, fig_sizes, sizes_alt, sizes_end_tokens
from horde_policy.views.model import (
    SCENARIO_COLUMNS,
    WORKER_COLUMNS,
    answer,
    detail_tiles,
    hidden_conditions,
    losses_by_worker,
    no_refusal_sentence,
    refused_request,
    scenario_rows,
    worker_rows,
)
from tests.unit.board.made import listed, snapshot, worker

RECORDED = Path(__file__).parents[3] / "data" / "recorded"
SETTINGS = AllowanceSettings()


def fleet_of(queued: float | None = 0.0, **changes: object) -> Fleet:
    models = [] if queued is None else [listed("m", queued)]
    return Fleet.of(snapshot([worker("w", "m", **changes)], models), SETTINGS)


def detail(fleet: Fleet, size: int = 80) -> ModelDetail:
    return model_detail(fleet, ("m",), size)


@pytest.mark.parametrize(
    ("fleet", "size", "text"),
    [
        (fleet_of(0.0), 80, "A request for 80 tokens is free: 4,096 tokens are free at an estimated wait of 0 s"),
        (fleet_of(1800.0), 512, "A request for 512 tokens is free: 2,304 tokens are free at an estimated wait of 180 s"),
        (fleet_of(2960.0, max_length=4096), 600, "A request for 600 tokens needs kudos: 571 tokens are free at an estimated"),
        (fleet_of(0.0), 513, "No worker takes 513 tokens: the allowance is the floor, 512 tokens"),
        (
            fleet_of(0.0, max_context_length=1024),
            80,
            "No worker takes 80 tokens at a context of 2,048: the allowance is the floor",
        ),
        (fleet_of(0.0, online=False), 80, "No worker can take a request now: the allowance is the floor, 512 tokens"),
        (fleet_of(None), 80, "The allowance is not known, since the queue is not reported"),
    ],
)
def test_the_answer_is_one_sentence(fleet: Fleet, size: int, text: str) -> None:
    assert answer(detail(fleet, size), SETTINGS).startswith(text)


@pytest.mark.parametrize(
    ("fleet", "size", "refused_size", "message"),
    [
        # Nobody takes more than 512: the next larger has no worker.
        (fleet_of(0.0), 80, 513, "No online worker can take this request for 513 output tokens"),
        # 180 s: 2304 are free, so 2305 needs kudos.
        (
            fleet_of(1800.0, max_length=4096),
            80,
            2305,
            "Up to 2304 output tokens are free right now, and this request asks for 2305",
        ),
        # The size asked is itself refused.
        (
            fleet_of(9000.0, max_length=4096),
            1000,
            1000,
            "Up to 512 output tokens are free right now, and this request asks for 1000",
        ),
        # Without a worker anything above the floor is refused.
        (fleet_of(0.0, online=False), 80, 513, "No online worker can take this request for 513 output tokens"),
    ],
)
def test_the_sentence_of_a_refusal_is_that_of_the_decision(fleet: Fleet, size: int, refused_size: int, message: str) -> None:
    refused = refused_request(detail(fleet, size), fleet, 2048)
    assert refused is not None
    assert refused.max_length == refused_size
    assert refused.decision.outcome == "refused"
    assert refused.decision.message.startswith(message)


def test_without_a_queue_no_refusal_is_foretold() -> None:
    fleet = fleet_of(None)
    assert refused_request(detail(fleet), fleet, 2048) is None
    assert no_refusal_sentence(detail(fleet)) == "The queue is not reported, so no refusal can be foretold."
    assert no_refusal_sentence(detail(fleet_of(0.0))) == "No size is refused now."


@pytest.mark.parametrize(
    ("fleet", "why"), [(fleet_of(None), "queue not reported"), (fleet_of(0.0, online=False), "no eligible worker")]
)
def test_a_dash_stands_with_its_reason(fleet: Fleet, why: str) -> None:
    tiles = {str(tile["label"]): tile for tile in detail_tiles(detail(fleet))}
    assert (tiles["Estimated wait"]["value"], tiles["Estimated wait"]["sub"]) == ("—", why)
    assert all(tile["sub"] and "—" not in str(tile["sub"]) for tile in tiles.values() if tile["value"] == "—")


@pytest.mark.parametrize("name", ["demo", *sorted(path.name for path in RECORDED.iterdir() if path.is_dir())])
@pytest.mark.parametrize("size", [80, 512, 4096, 16384])
def test_every_model_of_every_recording_can_be_shown(name: str, size: int) -> None:
    fleet = Fleet.of(load_recorded(DEMO_FOLDER if name == "demo" else RECORDED / name), SETTINGS)
    for models in [(), *((model,) for model in fleet.names[:12])]:
        made = model_detail(fleet, models, size)
        assert all(
            set(row.cells) == {c.key for c in WORKER_COLUMNS} for row in worker_rows(made, losses_by_worker(made, fleet, 2048))
        )
        assert all(set(row.cells) == {c.key for c in SCENARIO_COLUMNS} for row in scenario_rows(made))
        assert len(detail_tiles(made)) == 7
        refused = refused_request(made, fleet, 2048)
        if refused is not None:
            assert refused.max_length > refused.decision.allowance_tokens
        largest = made.measure.largest_free_request_tokens
        figure = fig_sizes(
            made.steps,
            SETTINGS,
            end_tokens=sizes_end_tokens(made.steps, SETTINGS, size),
            largest_free_tokens=largest,
            mode="light",
        )
        assert max(max(trace.x) for trace in figure.data) <= figure.layout.xaxis.range[1]
        assert sizes_alt(largest)


def test_a_worker_that_does_not_count_says_why_and_stands_behind() -> None:
    fleet = Fleet.of(
        snapshot(
            [
                worker("a", "m", max_length=80, measured=False, requests_fulfilled=0, speed_tok_per_s=1.0),
                worker("b", "m", speed_tok_per_s=5.0),
                worker("c", "m", maintenance=True, max_length=80),
            ],
            [listed("m")],
        ),
        SETTINGS,
    )
    rows = worker_rows(model_detail(fleet, ("m",), 512), {})
    assert [row.id for row in rows] == ["worker b", "worker a", "worker c"]
    assert [row.cells["counts"] for row in rows] == ["yes", "no", "no"]
    assert rows[1].cells["speed"] == {"text": "10.0", "sub": "assumed"}
    assert "at most 80 output tokens" in str(rows[1].cells["why"])
    assert "maintenance" in str(rows[2].cells["why"])
    assert rows[1].out


def test_the_steps_are_drawn_with_their_state_and_the_largest_free_request_on_the_diagonal() -> None:
    fleet = Fleet.of(snapshot([worker("a", "m", max_length=1024), worker("b", "m")], [listed("m", 2000.0)]), SETTINGS)
    made = model_detail(fleet, ("m",), 80)
    largest = made.measure.largest_free_request_tokens
    figure = fig_sizes(
        made.steps, SETTINGS, end_tokens=sizes_end_tokens(made.steps, SETTINGS, 80), largest_free_tokens=largest, mode="light"
    )
    spans = [(tuple(trace.x), trace.y[0]) for trace in figure.data if trace.hovertemplate and "tokens: " in trace.hovertemplate]
    # 2000 tokens at 20 tok/s up to 512, at 10 tok/s up to 1024, nobody above that.
    assert spans[:2] == [((1, 512), 3498), ((513, 1024), 2005)]
    assert spans[2][1] == 512
    point = figure.data[-1]
    assert (point.x[0], point.y[0]) == (1024, 1024)


def test_the_key_names_everything_that_is_drawn_over_the_sizes_once_and_in_its_look() -> None:
    workers = [worker("a", "m", max_length=1024), worker("b", "m"), worker("c", "m", max_length=600)]
    fleet = Fleet.of(snapshot(workers, [listed("m", 2000.0)]), SETTINGS)
    made = model_detail(fleet, ("m",), 80)
    figure = fig_sizes(
        made.steps, SETTINGS, end_tokens=sizes_end_tokens(made.steps, SETTINGS, 80), largest_free_tokens=512, mode="light"
    )
    add_rules_over_sizes(figure, made.steps, [512] * len(made.steps), 512, "light")
    key = [trace for trace in figure.data if trace.showlegend]
    assert sorted(trace.name for trace in key) == [
        "allowance: falling",
        "jobs rule",
        "largest free request",
        "no worker takes it",
        "previous rule",
        "size asked for, as an allowance",
    ]
    looks = {trace.name: (trace.line.color, trace.line.dash) for trace in key if trace.mode == "lines"}
    assert len(set(looks.values())) == len(looks), "no two lines look the same"
    for trace in figure.data:
        if trace.mode == "lines":
            assert (trace.line.color, trace.line.dash) == looks[trace.name]
    assert figure.layout.legend.yref == "container", "below the plot"


def test_what_nobody_reports_is_named() -> None:
    assert len(hidden_conditions()) >= 5
    assert all(text.endswith(".") for text in hidden_conditions())
