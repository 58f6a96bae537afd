"""The two stores that every ledger test runs on: a SQLite file and a database of a real PostgreSQL."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from horde_policy.budget import Ledger, Limit
from horde_policy.clock import FixedClock
from tests.server_postgres import postgres_server, postgres_url
from tests.unit.budget.accounts import START

__all__ = ["postgres_server", "postgres_url"]


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.server)])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgres":
        url: str = request.getfixturevalue("postgres_url")
        return url
    return f"sqlite:///{tmp_path / 'ledger.db'}"


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(START)


@pytest.fixture
def ledger(store_url: str, clock: FixedClock) -> Iterator[Ledger]:
    made = Ledger(store_url, owner="copy-1", clock=clock, expiry_s=600)
    made.set_budget("team", Limit("day", "1"))
    yield made
    audit = made.audit()
    assert audit.agrees, "every counter must equal its rows and entries after every test"
    made.close()
