"""Who could take a request and why the others could not: every condition of horde.md §5.1 that the inputs carry."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from horde_policy.errors import FrameError, InputError
from horde_policy.frames.workers import WORKERS
from horde_policy.policy.eligibility import (
    HIDDEN_CONDITIONS,
    VALIDATED_BACKENDS,
    Request,
    Worker,
    could_take,
    eligible_workers,
    judge,
    workers_by_model,
    workers_from_frame,
)
from horde_policy.settings import AllowanceSettings
from tests.unit.policy import strategies as some

SETTINGS = AllowanceSettings()
GOOD = Worker(
    worker_id="w1",
    models=("koboldcpp/L3-8B", "aphrodite/Big-70B"),
    max_length=512,
    max_context_length=4096,
    speed_tok_per_s=7.4,
    measured=True,
    threads=1,
    trusted=True,
    bridge_agent="KoboldCppEmbedWorker:2:url",
)
ASK = Request(models=("koboldcpp/L3-8B",), max_length=512, max_context_length=4096)


def codes(worker: Worker, request: Request) -> list[str]:
    return [reason.code for reason in judge(worker, request, SETTINGS).reasons]


def test_a_worker_that_fits_at_its_very_sizes_is_in_with_nothing_unknown_of_it() -> None:
    verdict = judge(GOOD, ASK, SETTINGS)
    assert verdict.eligible
    assert verdict.reasons == ()
    assert verdict.unknowns == ()


@pytest.mark.parametrize(
    ("worker_changes", "request_changes", "code"),
    [
        ({"max_length": 511}, {}, "max_length"),
        ({"max_context_length": 4095}, {}, "max_context_length"),
        ({"models": ("other",)}, {}, "models"),
        ({"models": ("KOBOLDCPP/L3-8B",)}, {}, "models"),
        ({"models": ()}, {}, "models"),
        ({"maintenance": True}, {}, "maintenance"),
        ({"online": False}, {}, "offline"),
        ({"flagged": True}, {}, "flagged"),
        ({"speed_tok_per_s": 4.9}, {"slow_workers": False}, "performance"),
        ({"trusted": False}, {"trusted_workers": True}, "untrusted"),
        ({"bridge_agent": "KoboldCpp:2:url"}, {"validated_backends": True}, "backend"),
        ({"bridge_agent": ""}, {"validated_backends": True}, "backend"),
        ({}, {"workers": ("w2",)}, "worker_id"),
        ({}, {"workers": ("w2", "w1"), "worker_blacklist": True}, "blacklist"),
        ({"max_length": None}, {}, "max_length_unknown"),
        ({"max_context_length": None}, {}, "max_context_length_unknown"),
        ({"models": None}, {}, "models_unknown"),
        ({"models": None}, {"models": ()}, "models_unknown"),
        ({"trusted": None}, {"trusted_workers": True}, "untrusted_unknown"),
        ({"bridge_agent": None}, {"validated_backends": True}, "backend_unknown"),
    ],
)
def test_each_condition_alone_keeps_a_worker_out(
    worker_changes: dict[str, Any], request_changes: dict[str, Any], code: str
) -> None:
    worker, request = replace(GOOD, **worker_changes), replace(ASK, **request_changes)
    assert codes(worker, request) == [code]
    assert not could_take(worker, request, SETTINGS)


@pytest.mark.parametrize(
    ("worker_changes", "request_changes"),
    [
        ({"speed_tok_per_s": 0.1}, {}),
        ({"speed_tok_per_s": 5.0}, {"slow_workers": False}),
        ({"trusted": False}, {}),
        ({"trusted": None}, {}),
        ({"bridge_agent": None}, {}),
        ({}, {"trusted_workers": True, "validated_backends": True}),
        ({}, {"models": ()}),
        ({"models": ()}, {"models": ()}),
        ({}, {"models": ("nobody", "koboldcpp/L3-8B")}),
        ({}, {"workers": ("w2", "w1")}),
        ({}, {"workers": ("w2",), "worker_blacklist": True}),
        ({}, {"worker_blacklist": True}),
    ],
)
def test_what_does_not_keep_a_worker_out(worker_changes: dict[str, Any], request_changes: dict[str, Any]) -> None:
    worker, request = replace(GOOD, **worker_changes), replace(ASK, **request_changes)
    assert codes(worker, request) == []
    assert could_take(worker, request, SETTINGS)


def test_every_reason_that_holds_is_given() -> None:
    worker = Worker(
        worker_id="w",
        models=("x",),
        max_length=1,
        max_context_length=1,
        online=False,
        maintenance=True,
        flagged=True,
        trusted=False,
    )
    request = replace(ASK, trusted_workers=True, validated_backends=True, workers=("v",))
    assert codes(worker, request) == [
        "offline",
        "maintenance",
        "flagged",
        "models",
        "max_length",
        "max_context_length",
        "untrusted",
        "backend_unknown",
        "worker_id",
    ]


@pytest.mark.parametrize("field", ["online", "maintenance", "flagged"])
def test_a_disqualification_not_reported_is_unknown_and_does_not_keep_the_worker_out(field: str) -> None:
    nothing: dict[str, Any] = {field: None}
    worker = replace(GOOD, **nothing)
    verdict = judge(worker, ASK, SETTINGS)
    assert verdict.eligible
    assert [unknown.code for unknown in verdict.unknowns] == [field if field != "online" else "offline"]
    assert not verdict.unknowns[0].hidden


def test_conditions_hidden_for_every_worker_are_named_apart() -> None:
    assert {unknown.code for unknown in HIDDEN_CONDITIONS} >= {"paused", "unsafe_ip", "matching_softprompt", "bridge_version"}
    assert all(unknown.hidden for unknown in HIDDEN_CONDITIONS)


@pytest.mark.parametrize("name", sorted(VALIDATED_BACKENDS))
def test_validated_backends_are_told_by_the_bridge_name(name: str) -> None:
    worker = replace(GOOD, bridge_agent=f"{name}:9:https://x:1/y")
    assert could_take(worker, replace(ASK, validated_backends=True), SETTINGS)


def test_only_the_first_five_ids_of_a_worker_list_count() -> None:
    listed = ("a", "b", "c", "d", "e", "w1")
    assert codes(GOOD, replace(ASK, workers=listed)) == ["worker_id"]
    assert codes(GOOD, replace(ASK, workers=listed, worker_blacklist=True)) == []


@pytest.mark.parametrize(
    ("models", "sizes", "speed", "slow"),
    [
        (("koboldcpp/L3-8B",), None, 4.9, True),
        (("koboldcpp/L3-8B",), None, 5.0, False),
        (("m-13B",), None, 3.9, True),
        (("m-13B",), None, 4.0, False),
        (("m-19.9B",), None, 3.9, True),
        (("m-20B",), None, 3.0, False),
        (("8x7B",), None, 2.9, True),
        (("8x7B",), None, 3.0, False),
        (("nameless",), None, 3.0, False),
        (("nameless",), None, 2.9, True),
        (("nameless",), {"nameless": 8.0}, 4.9, True),
        (("L3-8B",), {"L3-8B": 70.0}, 3.0, False),
        (("L3-8B",), {"other": 70.0}, 3.0, True),
        (("m-70B", "m-8B"), None, 3.0, False),
        (("m-8B", "m-70B"), None, 3.0, True),
        ((), None, 3.0, False),
        ((), None, 2.9, True),
    ],
)
def test_slow_workers_by_the_size_of_the_first_model(
    models: tuple[str, ...], sizes: dict[str, float] | None, speed: float, *, slow: bool
) -> None:
    worker = replace(GOOD, models=models, speed_tok_per_s=speed)
    request = replace(ASK, models=models, slow_workers=False)
    verdict = judge(worker, request, SETTINGS, sizes)
    assert [reason.code for reason in verdict.reasons] == (["performance"] if slow else [])
    assert could_take(worker, request, SETTINGS, sizes) is not slow


@pytest.mark.parametrize(
    ("models", "sizes", "words"),
    [
        (("m-8B",), None, "by its name"),
        (("m-8B",), {"m-8B": 8.0}, "8 billion parameters."),
        (("m",), None, "unknown size"),
        ((), None, "names no model"),
    ],
)
def test_the_slow_verdict_says_which_limit_applied(models: tuple[str, ...], sizes: dict[str, float] | None, words: str) -> None:
    request = replace(ASK, models=models, slow_workers=False)
    out = judge(replace(GOOD, models=("m", "m-8B"), speed_tok_per_s=1.0), request, SETTINGS, sizes)
    into = judge(replace(GOOD, models=("m", "m-8B"), speed_tok_per_s=9.0), request, SETTINGS, sizes)
    assert words in out.reasons[0].text
    assert words in into.notes[0]


def test_an_unmeasured_worker_is_slow_only_if_the_assumed_speed_is() -> None:
    worker = replace(GOOD, measured=False, speed_tok_per_s=1.0)
    request = replace(ASK, slow_workers=False)
    assert could_take(worker, request, SETTINGS)
    assert "assumed" in judge(worker, request, SETTINGS).notes[0]
    assert not could_take(worker, request, SETTINGS.changed(assumed_speed_tok_per_s=4.0))


@given(worker=some.workers(), request=some.requests(), settings=some.settings())
def test_the_quick_answer_is_the_full_verdict(worker: Worker, request: Request, settings: AllowanceSettings) -> None:
    sizes = {"nameless": 8.0}
    verdict = judge(worker, request, settings, sizes)
    assert could_take(worker, request, settings, sizes) == verdict.eligible
    assert eligible_workers([worker], request, settings, sizes) == ((worker,) if verdict.eligible else ())
    assert len({reason.code for reason in verdict.reasons}) == len(verdict.reasons)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("max_length", -1),
        ("max_length", 1.5),
        ("max_length", True),
        ("max_context_length", -1),
        ("threads", -1),
        ("speed_tok_per_s", -0.1),
        ("speed_tok_per_s", float("nan")),
        ("speed_tok_per_s", float("inf")),
    ],
)
def test_a_worker_with_an_impossible_number_is_refused(field: str, value: Any) -> None:
    with pytest.raises(InputError, match=f"worker, w1, field {field}"):
        replace(GOOD, **{field: value})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("models", ["a"]),
        ("models", ("a", 1)),
        ("workers", "w1"),
        ("max_length", 0),
        ("max_length", 16385),
        ("max_length", 80.0),
        ("max_length", True),
        ("max_context_length", 0),
        ("n", 0),
        ("n", 21),
        ("requester", "rich"),
        ("can_pay", 1),
        ("chat", None),
        ("slow_workers", "yes"),
        ("priority", float("nan")),
        ("priority", float("inf")),
    ],
)
def test_a_request_that_the_server_would_refuse_as_invalid_is_refused(field: str, value: Any) -> None:
    with pytest.raises(InputError, match=f"request, field {field}"):
        replace(ASK, **{field: value})


def test_the_route_takes_up_to_16384_tokens() -> None:
    assert replace(ASK, max_length=16384, max_context_length=16384).max_length == 16384
    with pytest.raises(InputError, match=r"16384 \(A23\)"):
        replace(ASK, max_length=16385)


def test_priority_at_creation_depends_on_the_requester() -> None:
    assert replace(ASK, requester="anonymous").starting_priority == -50.0
    assert replace(ASK, requester="registered").starting_priority == 0.0
    assert replace(ASK, requester="anonymous", priority=7).starting_priority == 7.0


def test_workers_come_out_of_the_frame_in_its_order_with_null_kept() -> None:
    import polars as pl

    rows: list[dict[str, object]] = [
        {"worker_id": "b", "models": ["m", "m"], "max_length": 512, "speed_tok_per_s": 7.4, "measured": True, "name": "<b>"},
        {"worker_id": "a", "models": [], "online": True, "threads": 2},
    ]
    frame = pl.DataFrame(rows, schema=WORKERS.polars_schema())
    first, second = workers_from_frame(frame)
    assert (first.worker_id, first.models, first.max_length, first.max_context_length) == ("b", ("m", "m"), 512, None)
    assert (first.name, first.online, first.maintenance, first.flagged, first.measured) == ("<b>", None, None, None, True)
    assert (second.worker_id, second.models, second.threads, second.speed_tok_per_s) == ("a", (), 2, None)
    with pytest.raises(FrameError, match="column models"):
        workers_from_frame(frame.drop("models"))


def test_the_index_by_model_holds_available_workers_once_in_order() -> None:
    away = replace(GOOD, worker_id="away", maintenance=True)
    twice = replace(GOOD, worker_id="twice", models=("m", "m", "koboldcpp/L3-8B"))
    unreadable = replace(GOOD, worker_id="unreadable", models=None)
    index = workers_by_model([GOOD, away, twice, unreadable])
    assert [worker.worker_id for worker in index["koboldcpp/L3-8B"]] == ["w1", "twice"]
    assert [worker.worker_id for worker in index["m"]] == ["twice"]
    assert set(index) == {"koboldcpp/L3-8B", "aphrodite/Big-70B", "m"}
