"""The command ``allowance``: the same look for one request at several sizes."""

import json
from typing import Any

import pytest

from horde_policy.cli.allowance import models_named, sizes_named, unknown_models
from horde_policy.cli.main import EXIT_BAD_INPUT, main
from horde_policy.errors import InputError
from tests.unit.board import by_hand

CYDONIA = "koboldcpp/Cydonia-24B-v4.1"
MAGNUM = "koboldcpp/mini-magnum-12b-v1.1"
SNAPSHOT = str(by_hand.RECORDED / "snapshot")


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(["allowance", "--recorded", SNAPSHOT, *arguments, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert isinstance(found, dict)
    return found


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["allowance", *arguments]) == EXIT_BAD_INPUT
    out, err = capsys.readouterr()
    assert out == ""
    return err


def test_a_size_is_a_pool_of_its_own_where_workers_declare_different_sizes(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, "--model", CYDONIA, "--max-length", "80,512,1024,4096")
    assert list(found) == ["fetched_at", "source", "problems", "models", "sizes"]
    assert found["models"] == [CYDONIA]
    assert [entry["eligible_workers"] for entry in found["sizes"]] == [2, 2, 1, 0]
    # workers of 20.8 and 33.1 tok/s, of which only the second takes 1024
    assert [entry["speed_tok_per_s"] for entry in found["sizes"]] == [20.8 + 33.1, 20.8 + 33.1, 33.1, 0.0]
    assert [entry["state"] for entry in found["sizes"]] == ["full", "full", "full", "too_large"]


@pytest.mark.parametrize(
    "models", [(CYDONIA,), (CYDONIA, MAGNUM), ("koboldcpp/gemma-3-27b-it",), (MAGNUM, "koboldcpp/Llama-3.2-1B-Instruct")]
)
def test_every_figure_is_as_worked_out_by_hand(models: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, "--model", ",".join(models), "--max-length", "80,256,300,512", "--max-length", "1024,4096,16384")
    assert found["models"] == list(models)
    assert [entry["max_length"] for entry in found["sizes"]] == [80, 256, 300, 512, 1024, 4096, 16384]
    for entry in found["sizes"]:
        assert entry["model"] == (models[0] if len(models) == 1 else None)
        for field, value in by_hand.entry("snapshot", models, entry["max_length"]).items():
            exact = not isinstance(value, float | dict)
            assert entry[field] == (value if exact else pytest.approx(value, rel=1e-13)), field


def test_one_model_at_one_size_is_the_entry_of_the_snapshot(capsys: pytest.CaptureFixture[str]) -> None:
    one = answer(capsys, "--model", CYDONIA, "--max-length", "512")["sizes"][0]
    assert main(["snapshot", "--recorded", SNAPSHOT, "--max-length", "512", "--json"]) == 0
    entries = json.loads(capsys.readouterr().out)["models"]
    assert one == next(entry for entry in entries if entry["model"] == CYDONIA)


MADE_UP = {"code": "synthetic", "subject": "Busy test server", "text": "the data of this source are made up", "level": "note"}


def test_a_model_that_nobody_knows_has_no_worker_and_names_close_to_it(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, "--model", "cydonia", "--max-length", "80")
    entry = found["sizes"][0]
    assert (entry["state"], entry["allowance_tokens"], entry["queued_tokens"]) == ("no_worker", 512, None)
    assert [problem for problem in found["problems"] if problem["code"] != "synthetic"] == [
        {
            "code": "unknown_model",
            "subject": "cydonia",
            "text": f"is neither listed nor served by any worker of the list; close to it: {CYDONIA}",
            "level": "note",
        }
    ]


def test_a_model_in_maintenance_is_known(capsys: pytest.CaptureFixture[str]) -> None:
    assert answer(capsys, "--model", "koboldcpp/gemma-3-27b-it", "--max-length", "80")["problems"] == [MADE_UP]


def test_the_table_shows_a_row_a_size_and_the_notes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["allowance", "--recorded", SNAPSHOT, "--model", CYDONIA, "--max-length", "80,4096"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert CYDONIA in lines[0]
    assert [line.split()[0] for line in lines[1:4]] == ["size", "80", "4,096"]
    assert any("the largest taken is 1,024" in line for line in lines[4:])


@pytest.mark.parametrize(
    ("values", "known", "models"),
    [
        (["a"], [], ("a",)),
        (["a,b"], ["a", "b"], ("a", "b")),
        (["a, b "], ["a", "b"], ("a", "b")),
        (["a", "b"], [], ("a", "b")),
        (["a,b"], ["a,b"], ("a,b",)),
        (["a,b"], ["a,b", "a", "b"], ("a,b",)),
        (["x,a,b,y"], ["a,b"], ("x", "a,b", "y")),
        (["a,b,c"], ["a,b,c", "a,b"], ("a,b,c",)),
        (["b,a", "a,b"], ["a", "b"], ("b", "a")),
        (["my merge (Q4_K_M).gguf"], [], ("my merge (Q4_K_M).gguf",)),
    ],
)
def test_names_are_split_at_commas_but_a_known_name_with_commas_stays_whole(
    values: list[str], known: list[str], models: tuple[str, ...]
) -> None:
    assert models_named(values, known) == models


@pytest.mark.parametrize("value", ["", " ", "a,", ",a", "a,,b"])
def test_an_empty_name_is_bad_input(value: str) -> None:
    with pytest.raises(InputError, match="must not hold an empty name"):
        models_named([value], ["a"])


def test_sizes_keep_their_order_and_come_once() -> None:
    assert sizes_named(["1024, 80", "80,16384"]) == (1024, 80, 16384)


@pytest.mark.parametrize("sizes", ["0", "16385", "text", "80,", "", "-5", "1_000", "８０", "80.0", "9" * 5000])
def test_a_size_that_is_none_is_bad_input(sizes: str, capsys: pytest.CaptureFixture[str]) -> None:
    err = refused(capsys, "--recorded", SNAPSHOT, "--model", "a", f"--max-length={sizes}")
    assert "must be a whole number from 1 to 16384 tokens (A23)" in err


def test_missing_options_and_sources_are_bad_input(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HORDE_URL", raising=False)
    assert "--model" in refused(capsys, "--recorded", SNAPSHOT, "--max-length", "80")
    assert "--max-length" in refused(capsys, "--recorded", SNAPSHOT, "--model", "a")
    assert "name one by" in refused(capsys, "--model", "a", "--max-length", "80")
    assert "empty name" in refused(capsys, "--recorded", SNAPSHOT, "--model", "", "--max-length", "80")


def test_nothing_is_close_to_a_name_like_none() -> None:
    assert unknown_models(["zzz"], ["a", "b"])[0].text == "is neither listed nor served by any worker of the list"
    assert unknown_models(["a"], ["a"]) == ()
