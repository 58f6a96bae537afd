"""The budget's compiled loops, made or read from the disk before anybody waits for them."""

from datetime import UTC, datetime, timedelta
from typing import Final

import polars as pl

from horde_policy.budget.price_table import parse_prices
from horde_policy.budget.requests import checked_requests
from horde_policy.budget.simulate import replay_budget

__all__ = ["warm_up_budget"]

AT: Final = datetime(2026, 1, 1, tzinfo=UTC)
PRICES: Final = """
[table]
name = "warm-up"
unit = "usd_per_million_tokens"
source = "made up"
[[price]]
provider = "warm-up"
model = "m"
input = "3"
output = "15"
"""


def warm_up_budget() -> None:
    """Replay two made-up requests under every setting, so that the loops are compiled; for a background thread.

    The first time after an installation takes tens of seconds, later about one.

    >>> warm_up_budget()
    """
    requests = pl.DataFrame(
        {
            "created": [AT, AT + timedelta(seconds=1)],
            "model": ["m", "m"],
            "input_tokens": [10, 10],
            "max_tokens": [16, None],
            "output_tokens": [8, 8],
            "duration_s": [2.0, 2.0],
        },
        schema_overrides={"created": pl.Datetime("us", "UTC")},
    )
    replay_budget(checked_requests(requests), parse_prices(PRICES), "1")
