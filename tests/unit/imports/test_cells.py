"""The consistency rules of horde.md §7.4 on the cells of the decisions table."""

import polars as pl
import pytest

from horde_policy.frames.decisions import OUTCOMES, REQUESTERS, SIZES, impossible_cells, size_of
from horde_policy.settings import AllowanceSettings

SMALL, MIDDLE, LARGE, HUGE = "<=512", "1025-2048", "2049-4096", ">4096"


def finding(
    requester: str, outcome: str, asked: str, allowed: str, *, chat: bool, settings: AllowanceSettings | None = None
) -> tuple[str, str] | None:
    cell = {"requester": requester, "outcome": outcome, "requested_size": asked, "allowance_size": allowed, "chat": chat}
    found = impossible_cells(settings).filter(pl.all_horizontal(pl.col(name) == value for name, value in cell.items()))
    return found.select("level", "code").row(0) if found.height else None


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        (("registered", "downgraded", LARGE, SMALL, True), ("impossible", "downgraded_chat")),
        (("registered", "downgraded", LARGE, SMALL, False), None),
        (("registered", "downgraded", SMALL, LARGE, False), ("special", "downgraded_under_allowance")),
        (("anonymous", "free", LARGE, SMALL, False), ("impossible", "free_over_allowance")),
        (("anonymous", "free", SMALL, LARGE, True), None),
        (("registered", "funded", SMALL, LARGE, False), ("special", "held_under_allowance")),
        (("registered", "refused", SMALL, LARGE, False), ("special", "held_under_allowance")),
        (("shared_key", "refused", SMALL, LARGE, False), ("special", "refused_shared_key_under_allowance")),
        (("anonymous", "funded", LARGE, SMALL, False), ("special", "anonymous_funded")),
        (("anonymous", "refused", LARGE, SMALL, False), None),
        (("anonymous", "free", SMALL, HUGE, False), ("impossible", "allowance_out_of_range")),
        (("registered", "refused", MIDDLE, MIDDLE, False), ("undecided", "same_bucket")),
    ],
)
def test_each_rule(cell: tuple[str, str, str, str, bool], expected: tuple[str, str] | None) -> None:
    *words, chat = cell
    assert finding(*words, chat=bool(chat)) == expected


def test_the_range_of_allowances_follows_the_settings() -> None:
    wide = AllowanceSettings(ceiling_tokens=8192, floor_tokens=600)
    assert finding("anonymous", "free", SMALL, HUGE, chat=False, settings=wide) is None
    assert finding("anonymous", "free", SMALL, SMALL, chat=False, settings=wide) == ("impossible", "allowance_out_of_range")


def test_every_cell_is_named_once_with_its_reason() -> None:
    cells = impossible_cells()
    names = ["requester", "outcome", "requested_size", "allowance_size", "chat"]
    assert cells.select(names).is_unique().all()
    assert cells.height < len(REQUESTERS) * len(OUTCOMES) * len(SIZES) ** 2 * 2
    assert cells["text"].str.contains(r"\(A\d+|one bucket").all()


@pytest.mark.parametrize(
    ("tokens", "size"),
    [
        (1, "<=512"),
        (512, "<=512"),
        (513, "513-1024"),
        (1024, "513-1024"),
        (1025, "1025-2048"),
        (2048, "1025-2048"),
        (2049, "2049-4096"),
        (4096, "2049-4096"),
        (4097, ">4096"),
        (16384, ">4096"),
    ],
)
def test_sizes(tokens: int, size: str) -> None:
    assert size_of(tokens) == size


def test_the_words_are_those_of_the_telemetry() -> None:
    from horde_policy.policy.telemetry import size_bucket

    assert [size_bucket(tokens) for tokens in range(1, 5000)] == [size_of(tokens) for tokens in range(1, 5000)]
