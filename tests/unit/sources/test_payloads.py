"""Every form an answer's field may have (horde.md §1, horde_observed.md): read, null, or null with a named problem."""

import contextlib
import json
import math
from datetime import UTC, datetime
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from horde_policy.errors import SourceFormatError
from horde_policy.frames.models import MODEL_DEMAND, MODELS
from horde_policy.frames.snapshot import Heartbeat, Modes, Performance, Totals
from horde_policy.frames.workers import WORKERS
from horde_policy.sources.parts import PARTS, PartName, read_models, read_part, read_workers
from horde_policy.sources.payloads import LARGEST_FIGURE, MOST_PROBLEMS, parse_json

AT = datetime(2026, 11, 29, 12, tzinfo=UTC)


def worker(**changes: Any) -> dict[str, Any]:
    """One worker as the recorded server lists it."""
    item: dict[str, Any] = {
        "requests_fulfilled": 24,
        "kudos_details": {"generated": 248.0, "uptime": None},
        "performance": "53.8 tokens per second",
        "threads": 1,
        "uptime": 460,
        "maintenance_mode": False,
        "trusted": True,
        "flagged": False,
        "uncompleted_jobs": 0,
        "models": ["koboldcpp/L3-8B-Stheno-v3.2"],
        "team": {"name": None, "id": None},
        "bridge_agent": "KoboldCppEmbedWorker:2:https://github.com/LostRuins/koboldcpp",
        "max_length": 512,
        "max_context_length": 8192,
        "type": "text",
        "name": "quill-nest",
        "id": "e6a5746f",
        "online": True,
    }
    item.update(changes)
    return {name: value for name, value in item.items() if value is not ...}


def read_one(**changes: Any) -> tuple[dict[str, Any], list[str]]:
    frame, problems = read_workers([worker(**changes)])
    return frame.row(0, named=True), [problem.text for problem in problems]


# field as sent → column, value read; all documented forms, none a problem
ACCEPTED = [
    ({"performance": "53.8 tokens per second"}, "speed_tok_per_s", 53.8),
    ({"performance": "1.0 tokens per second", "requests_fulfilled": 0}, "measured", False),
    ({"performance": "No requests fulfilled yet", "requests_fulfilled": 0}, "speed_tok_per_s", None),
    ({"performance": "No requests fulfilled yet", "requests_fulfilled": 0}, "measured", False),
    ({"performance": "0.0 tokens per second"}, "speed_tok_per_s", 0.0),
    ({"performance": "7 tokens per second"}, "speed_tok_per_s", 7.0),
    ({"requests_fulfilled": 248.0}, "requests_fulfilled", 248),
    ({"requests_fulfilled": 1}, "measured", True),
    ({"max_length": 512.0}, "max_length", 512),
    ({"max_length": 0}, "max_length", 0),
    ({"max_context_length": 1_048_576}, "max_context_length", 1_048_576),
    ({"max_length": LARGEST_FIGURE}, "max_length", LARGEST_FIGURE),
    ({"threads": ...}, "threads", None),
    ({"owner": ...}, "owner", None),
    ({"owner": "Zoë#4"}, "owner", "Zoë#4"),
    ({"name": None}, "name", None),
    ({"name": "&lt;b&gt; &amp; <b>"}, "name", "&lt;b&gt; &amp; <b>"),
    ({"models": [], "max_length": 80, "performance": "1.0 tokens per second", "requests_fulfilled": 0}, "models", []),
    ({"models": ["a", "b", "a"]}, "models", ["a", "b"]),
    ({"maintenance_mode": True}, "maintenance", True),
    ({"online": False}, "online", False),
    ({"online": ...}, "online", None),
    ({"trusted": None}, "trusted", None),
    ({"type": ...}, "worker_id", "e6a5746f"),
    ({"something_new": {"deep": [1]}}, "worker_id", "e6a5746f"),
    ({"info": "CPU only &lt;3", "messages": []}, "worker_id", "e6a5746f"),
]


@pytest.mark.parametrize(("changes", "column", "value"), ACCEPTED, ids=[str(changes) for changes, _, _ in ACCEPTED])
def test_a_documented_form_is_read_without_a_problem(changes: dict[str, Any], column: str, value: object) -> None:
    row, problems = read_one(**changes)
    assert row[column] == value
    assert type(row[column]) is type(value)
    assert problems == []


# field as sent → column (null then), what the problem says besides the worker's name
UNREADABLE = [
    ("max_length", "long", "max_length", "must be a number"),
    ("max_length", True, "max_length", "must be a number"),
    ("max_length", 512.5, "max_length", "must be a whole number"),
    ("max_length", -1, "max_length", "must be at least 0"),
    ("max_length", math.nan, "max_length", "must be a finite number"),
    ("max_context_length", math.inf, "max_context_length", "must be a finite number"),
    ("max_context_length", 2**63, "max_context_length", "must be at most"),
    ("max_length", 10**400, "max_length", "must be at most"),
    ("max_length", {"tokens": 512}, "max_length", "must be a number"),
    ("max_length", None, "max_length", "max_length: not reported"),
    ("max_length", ..., "max_length", "max_length: not reported"),
    ("requests_fulfilled", "24", "measured", "must be a number"),
    ("requests_fulfilled", ..., "measured", "requests_fulfilled: not reported"),
    ("performance", "fast", "speed_tok_per_s", "must read like"),
    ("performance", "nan tokens per second", "speed_tok_per_s", "must read like"),
    ("performance", "-4.0 tokens per second", "speed_tok_per_s", "must read like"),
    ("performance", "9" * 40 + " tokens per second", "speed_tok_per_s", "must read like"),
    ("performance", "99999999999999999999 tokens per second", "speed_tok_per_s", "must be at most"),
    ("performance", "12.0 megapixelsteps per second", "speed_tok_per_s", "must read like"),
    ("performance", 53.8, "speed_tok_per_s", "must read like"),
    ("performance", ..., "speed_tok_per_s", "performance: not reported"),
    ("maintenance_mode", "no", "maintenance", "must be true or false"),
    ("maintenance_mode", 0, "maintenance", "must be true or false"),
    ("maintenance_mode", ..., "maintenance", "maintenance_mode: not reported"),
    ("name", 7, "name", "must be text"),
    ("bridge_agent", ["x"], "bridge_agent", "must be text"),
]


@pytest.mark.parametrize(("field", "sent", "column", "rule"), UNREADABLE, ids=[f"{f}={s!r:.30}" for f, s, _, _ in UNREADABLE])
def test_what_cannot_be_read_is_null_with_a_problem_that_names_item_and_field(
    field: str, sent: object, column: str, rule: str
) -> None:
    row, problems = read_one(**{field: sent})
    assert row[column] is None
    (text,) = problems
    assert field in text
    assert rule in text
    assert ("quill-nest" if field != "name" else "e6a5746f") in text or field == "name"


def test_unreadable_models_are_no_models_and_a_problem() -> None:
    row, (text,) = read_one(models="koboldcpp/x")
    assert row["models"] == []
    assert "field models: 'koboldcpp/x' must be a list" in text
    row, (text,) = read_one(models=["a", 5, "b"])
    assert row["models"] == ["a", "b"]
    assert "field models: 5 must be a name" in text


def test_one_bad_worker_never_costs_the_others() -> None:
    items: list[object] = [worker(id="1"), "garbage", None, 5, [], worker(id="2", max_length="x"), worker(id="3")]
    frame, problems = read_workers(items)
    assert frame["worker_id"].to_list() == ["1", "2", "3"]
    assert frame["max_length"].to_list() == [512, None, 512]
    assert [problem.subject for problem in problems] == ["item 2", "item 3", "item 4", "item 5", "worker 'quill-nest'"]
    assert {problem.level for problem in problems} == {"problem"}


def test_of_two_workers_with_one_id_the_first_counts() -> None:
    frame, (problem,) = read_workers([worker(name="a", max_length=80), worker(name="b", max_length=90)])
    assert frame.select("name", "max_length").rows() == [("a", 80)]
    assert problem.code == "duplicate_worker"
    assert "'e6a5746f' is listed twice" in problem.text


def test_workers_without_an_id_all_stay() -> None:
    frame, problems = read_workers([worker(id=...), worker(id=None), worker(id=3)])
    assert frame.height == 3
    assert [p.code for p in problems] == ["not_reported", "not_reported", "unreadable_field", "not_reported"]


def test_workers_of_another_kind_are_left_out_with_one_note() -> None:
    frame, (note,) = read_workers([worker(), worker(id="i", type="image"), worker(id="j", type="interrogation")])
    assert frame.height == 1
    assert note.level == "note"
    assert "2 items, are not text workers" in note.text


def test_problems_of_one_answer_are_bounded_and_the_rest_counted() -> None:
    _, problems = read_workers(list(range(MOST_PROBLEMS + 25)))
    assert len(problems) == MOST_PROBLEMS + 1
    assert "25 more problems" in problems[-1].text


MODEL = {"name": "koboldcpp/Cydonia-24B-v4.1", "count": 3, "performance": 28.9, "queued": 1132.0, "jobs": 5.0, "eta": 13}

MODEL_FORMS: list[tuple[dict[str, Any], str, object, int]] = [
    ({}, "queued_tokens", 1132.0, 0),
    ({"queued": 0}, "queued_tokens", 0.0, 0),
    ({"queued": None}, "queued_tokens", None, 1),
    ({"queued": -1}, "queued_tokens", None, 1),
    ({"queued": "1132"}, "queued_tokens", None, 1),
    ({"queued": 1e300}, "queued_tokens", None, 1),
    ({"eta": 10000}, "eta_s", None, 0),
    ({"eta": 10000.0}, "eta_s", None, 0),
    ({"eta": 9999}, "eta_s", 9999.0, 0),
    ({"eta": None}, "eta_s", None, 0),
    ({"count": 0}, "threads", 0, 0),
    ({"count": 2.0}, "threads", 2, 0),
    ({"performance": 0}, "job_speed_tok_per_s", 0.0, 0),
    ({"performance": "28.9"}, "job_speed_tok_per_s", None, 1),
    ({"jobs": None}, "jobs", None, 0),
]


@pytest.mark.parametrize(("changes", "column", "value", "problems"), MODEL_FORMS, ids=[str(c) for c, _, _, _ in MODEL_FORMS])
def test_the_forms_of_a_listed_model(changes: dict[str, Any], column: str, value: object, problems: int) -> None:
    frame, found = read_models([MODEL | changes])
    assert frame[column].to_list() == [value]
    assert len(found) == problems


def test_of_two_rows_of_a_model_the_first_counts_and_a_nameless_one_is_left_out() -> None:
    frame, problems = read_models([MODEL, MODEL | {"queued": 9.0}, {"queued": 5.0}, MODEL | {"name": "img", "type": "image"}])
    assert frame["queued_tokens"].to_list() == [1132.0]
    assert [(p.code, p.level) for p in problems] == [
        ("duplicate_model", "problem"),
        ("not_reported", "problem"),
        ("other_kind", "note"),
    ]


def part_value(name: PartName, body: object) -> tuple[object, list[str]]:
    part = read_part(name, body, AT, "a horde")
    return part.value, [problem.text for problem in part.problems]


def test_the_totals_of_the_horde() -> None:
    assert part_value("performance", {"queued_tokens": 4430, "text_worker_count": 14.0, "queued_text_requests": None}) == (
        Performance(queued_tokens=4430.0, text_worker_count=14),
        [],
    )
    value, problems = part_value("performance", {"queued_tokens": "many"})
    assert value == Performance()
    assert problems == ["performance, its answer, field queued_tokens: 'many' must be a number; counted as not reported"]
    assert part_value("modes", {"maintenance_mode": True}) == (Modes(maintenance_mode=True), [])
    assert part_value("heartbeat", {"message": "OK", "queue": 0}) == (Heartbeat(message="OK"), [])


def test_the_stats_of_periods() -> None:
    value, problems = part_value("totals", {"minute": {"requests": 5, "tokens": 90.0}, "hour": 3, "day": {"requests": -1}})
    assert value == Totals(requests={"minute": 5}, tokens={"minute": 90})
    assert [text.split(",")[1] for text in problems] == [" period hour", " period day", " period month", " period total"]


def test_a_model_that_a_period_does_not_name_is_null_there() -> None:
    value, problems = part_value("demand", {"day": {"a": 3}, "month": {"a": 30.0, "b": 7, "c": "x"}, "total": {}})
    assert isinstance(value, pl.DataFrame)
    assert value.rows() == [("a", 3, 30, None), ("b", None, 7, None), ("c", None, None, None)]
    assert problems == ["demand, model 'c', period month, field requests: 'x' must be a number; counted as not reported"]


@pytest.mark.parametrize("body", [None, 5, "x", {"message": "An error"}, True])
@pytest.mark.parametrize("name", ["workers", "models"])
def test_an_answer_that_is_no_list_is_no_answer(name: PartName, body: object) -> None:
    with pytest.raises(SourceFormatError, match=f"a horde: {name} must be a list"):
        read_part(name, body, AT, "a horde")


@pytest.mark.parametrize("name", ["performance", "modes", "heartbeat", "totals", "demand"])
def test_an_answer_that_is_no_object_is_no_answer(name: PartName) -> None:
    with pytest.raises(SourceFormatError, match=f"a horde: {name} must be an object"):
        read_part(name, [], AT, "a horde")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is not JSON"),
        (b"<html>", "is not JSON"),
        (b'[{"a": 1}', "is not JSON"),
        (b"[" * 100_000, "nested too deep"),
    ],
)
def test_text_that_is_not_json_is_refused(content: bytes, message: str) -> None:
    with pytest.raises(SourceFormatError, match=message):
        parse_json(content, "a horde", "workers")


def test_numbers_no_figure_can_be_cost_only_their_field() -> None:
    text = json.dumps([worker()]).replace("8192", "9" * 5000).replace("460", "NaN").replace('"threads": 1', '"threads": 1e999')
    value, mended = parse_json(text.encode(), "a horde", "workers")
    frame, problems = read_workers(value)
    assert mended == ()
    assert frame.select("max_length", "max_context_length", "uptime_s", "threads").row(0) == (512, None, None, None)
    assert len(problems) == 3


def test_bytes_that_are_not_utf8_and_half_characters_cost_nothing_else() -> None:
    text = json.dumps([worker(name="A\ud800B", owner="OWNER")]).encode().replace(b"OWNER", b"\xff")
    value, mended = parse_json(text, "a horde", "workers")
    frame, problems = read_workers(value)
    assert frame.select("name", "owner").row(0) == ("A\ufffdB", "\ufffd")
    assert [problem.code for problem in mended] == ["broken_text", "broken_text"]
    assert problems == ()


def test_a_whole_surrogate_pair_is_a_character() -> None:
    value, mended = parse_json(rb'["\ud83d\ude00"]', "a horde", "workers")
    assert value == ["\U0001f600"]
    assert mended == ()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(["53.8 tokens per second", "text"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
WORKER_FIELDS = st.sampled_from(sorted(worker()))
ALMOST_WORKERS = st.lists(
    st.dictionaries(WORKER_FIELDS, JSON, max_size=4).map(lambda changes: worker(**changes)) | JSON,
    max_size=5,
)
ALMOST_MODELS = st.lists(
    st.dictionaries(st.sampled_from(sorted(MODEL)), JSON, max_size=3).map(lambda changes: MODEL | changes) | JSON, max_size=5
)
SCHEMAS = {"workers": WORKERS, "models": MODELS, "demand": MODEL_DEMAND}


def check_any_body(name: PartName, body: object) -> None:
    value, mended = parse_json(json.dumps(body).encode(), "a horde", name)
    try:
        part = read_part(name, value, AT, "a horde", mended)
    except SourceFormatError:
        assert not isinstance(value, list if name in ("workers", "models") else dict)
        return
    if isinstance(part.value, pl.DataFrame):
        SCHEMAS[name].checked(part.value)
        assert part.value.equals(part.value.sort(SCHEMAS[name].sort))


@given(body=ALMOST_WORKERS | JSON)
def test_no_workers_answer_raises_anything_else(body: object) -> None:
    check_any_body("workers", body)


@given(body=ALMOST_MODELS | JSON)
def test_no_models_answer_raises_anything_else(body: object) -> None:
    check_any_body("models", body)


@given(
    name=st.sampled_from(sorted(PARTS)),
    body=JSON | st.dictionaries(st.sampled_from(["day", "total", "message", "queued_tokens", "maintenance_mode"]), JSON),
)
def test_no_other_answer_raises_anything_else(name: PartName, body: object) -> None:
    check_any_body(name, body)


@given(good=st.integers(0, 4), body=st.lists(JSON, max_size=5))
def test_good_workers_survive_whatever_stands_beside_them(good: int, body: list[object]) -> None:
    """The good ones carry ids that nothing else can have."""
    items = [*body, *(worker(id=f"good {number} \U0001f600") for number in range(good))]
    value, _ = parse_json(json.dumps(items).encode(), "a horde", "workers")
    frame, _ = read_workers(value)
    kept = frame.filter(pl.col("worker_id").str.ends_with(" \U0001f600"))
    assert kept.height == good
    assert kept["max_length"].to_list() == [512] * good


@given(content=st.binary(max_size=200))
def test_no_bytes_raise_anything_else(content: bytes) -> None:
    value: object = None
    with contextlib.suppress(SourceFormatError):
        value, _ = parse_json(content, "a horde", "workers")
    assert value is None or isinstance(value, bool | int | float | str | list | dict)


@pytest.mark.soak
@settings(max_examples=5_000, deadline=None)
@given(workers=ALMOST_WORKERS | JSON, models=ALMOST_MODELS | JSON)
def test_no_answer_raises_anything_else_in_thousands(workers: object, models: object) -> None:
    check_any_body("workers", workers)
    check_any_body("models", models)
