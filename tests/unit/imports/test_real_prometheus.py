"""Must-show 1, the server: Debian's Prometheus scrapes the week, and its answers read back within the stated bounds."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from horde_policy.imports import SERIES_SELECTOR, load_mapping, read_exports
from tests.server_prometheus import PrometheusServer, metrics_endpoint, prometheus_is_there, running_prometheus
from tests.unit.imports.production_week import DAY, Week, produced
from tests.unit.imports.test_production_week import check_within

pytestmark = [pytest.mark.server, pytest.mark.skipif(not prometheus_is_there(), reason="Debian's prometheus is not installed")]

STEP_S = 3600
NAMES = SERIES_SELECTOR


@pytest.fixture(scope="module")
def week() -> Week:
    return produced(seed=11, step_s=STEP_S, begin=(int(time.time()) // DAY - 8) * DAY)


@pytest.fixture(scope="module")
def server(week: Week, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrometheusServer]:
    with (
        metrics_endpoint(lambda: week.scrapes) as port,
        running_prometheus(tmp_path_factory.mktemp("prometheus"), {"horde": port}) as server,
    ):
        end = week.begin + 7 * DAY
        server.wait_for(f"count(last_over_time({NAMES}[8d] @ {end}))", 100)
        server.wait_for('up{job="horde"}')
        yield server


def test_a_range_query_in_windows(server: PrometheusServer, week: Week) -> None:
    files = []
    for day in range(7):
        start = week.begin + day * DAY + STEP_S
        files.append(server.get("query_range", query=NAMES, start=str(start), end=str(start + DAY), step=str(STEP_S)))
    imported = read_exports(files)
    check_within(imported, week)
    total = imported.decisions["count_high"].sum()
    assert total == pytest.approx(sum(week.tally.decisions.values()), rel=0.05)
    # windows share their seams: nothing is doubled, and one long answer says the same
    whole = server.get(
        "query_range", query=NAMES, start=str(week.begin + STEP_S), end=str(week.begin + 7 * DAY), step=str(STEP_S)
    )
    assert read_exports(whole).decisions.equals(imported.decisions)


def test_a_fine_grid_repeats_values_and_they_are_not_counted_twice(server: PrometheusServer, week: Week) -> None:
    answers = [
        server.get(
            "query_range", query=NAMES, start=str(week.begin + day * DAY + 60), end=str(week.begin + (day + 1) * DAY), step="60"
        )
        for day in range(7)
    ]
    assert any(len(series["values"]) > 24 for series in json.loads(answers[0])["data"]["result"])
    check_within(read_exports(answers), week)


def test_raw_samples_of_a_range_vector(server: PrometheusServer, week: Week) -> None:
    answer = server.get("query", query=NAMES + "[8d]", time=str(week.begin + 7 * DAY))
    check_within(read_exports(answer), week)


def test_a_range_that_is_too_long_is_refused_by_the_server_and_said(server: PrometheusServer, week: Week) -> None:
    answer = server.get("query_range", query=NAMES, start=str(week.begin), end=str(week.begin + 7 * DAY), step="30")
    with pytest.raises(Exception, match="exceeded maximum resolution of 11,000 points"):
        read_exports(answer)


def test_increase_by_outcome_needs_a_mapping_and_is_added(server: PrometheusServer, week: Week, tmp_path: Path) -> None:
    query = f"sum by (horde_outcome) (increase(horde_text_free_allowance_decisions_total[{2 * STEP_S}s]))"
    answer = server.get(
        "query_range", query=query, start=str(week.begin + 2 * STEP_S), end=str(week.begin + 7 * DAY), step=str(2 * STEP_S)
    )
    assert {problem.code for problem in read_exports(answer).problems} == {"needs_mapping", "nothing_understood"}
    (tmp_path / "mapping.toml").write_text(
        f'[[series]]\nname = ""\nfamily = "decisions"\nvalues = "increase"\nrange_s = {2 * STEP_S}\n', encoding="utf-8"
    )
    imported = read_exports(answer, mapping=load_mapping(tmp_path / "mapping.toml"))
    total = imported.decisions["count_high"].sum()
    # increase() needs two samples in its range, so that it misses what first values and restarts hide
    assert 0.3 * sum(week.tally.decisions.values()) < total < 1.3 * sum(week.tally.decisions.values())
