"""exports.md 5: several processes that write the same series at the same instants, and nothing tells them apart."""

import random
from pathlib import Path

import pytest

from horde_policy.imports import read_exports
from horde_policy.imports.parquet import write_parquet
from tests.unit.imports.writing import (
    DECISIONS,
    QUEUE,
    buckets,
    classic,
    codes,
    decision,
    exposition,
    labels,
    number,
    otlp,
    outcomes,
)


class TestSeveralValuesAtOneTime:
    """Rule 5: processes that write the same series at the same instants, without an instance."""

    STEPS = 40

    def files(self, seed: int, processes: int, restarts: bool) -> tuple[list[bytes], dict[str, int]]:
        """One file a process; and what each series counted between the first and the last look, over all processes."""
        rng = random.Random(seed)
        names = {"free": DECISIONS + labels(horde_outcome="free"), "refused": DECISIONS + labels(horde_outcome="refused")}
        made, tally = [], dict.fromkeys(names, 0)
        for process in range(processes):
            held = {name: rng.randint(0, 50) + 200 * process * rng.randint(0, 1) for name in names}
            rows = []
            for step in range(self.STEPS):
                if restarts and rng.random() < 0.05:
                    held = dict.fromkeys(held, 0)
                for name in names if step else ():
                    more = rng.randint(0, 4) if process else rng.randint(0, 1)
                    held[name] += more
                    tally[name] += more
                rows += [(names[name], 60.0 * step, float(value)) for name, value in held.items()]
            made.append(exposition(rows))
        return made, tally

    @pytest.mark.parametrize("restarts", [False, True])
    @pytest.mark.parametrize("processes", [2, 3])
    @pytest.mark.parametrize("seed", range(4))
    def test_what_was_counted_lies_within_the_bounds_however_it_is_written(
        self, seed: int, processes: int, restarts: bool
    ) -> None:
        files, tally = self.files(seed, processes, restarts)
        by_scrape = b"".join(sorted(b"".join(files).splitlines(keepends=True), key=lambda line: bytes(line)[-14:]))
        for given in ([by_scrape], [b"".join(files)], files, [*files, by_scrape], [files[0], by_scrape]):
            imported = read_exports(given)
            for outcome, (low, high) in outcomes(imported).items():
                assert low == 0
                assert high >= tally[str(outcome)]
            assert "interleaved" in codes(imported)
            assert not {"conflict", "forgotten"} & codes(imported)

    def test_order_and_repetition_change_nothing(self) -> None:
        files, _ = self.files(1, 3, restarts=True)
        expected = read_exports(files).decisions
        for given in (files[::-1], [*files, files[1]], [files[1], files[2], files[0], files[0]]):
            assert read_exports(given).decisions.equals(expected)

    def test_kept_and_merged_again_it_stays_an_interval(self, tmp_path: Path) -> None:
        files, tally = self.files(2, 2, restarts=False)
        first = read_exports(files)
        write_parquet(first.samples, tmp_path / "kept.parquet")
        kept: Path = tmp_path / "kept.parquet"
        both: list[Path | bytes] = [kept, *files]
        for given in ([kept], both):
            again = read_exports([*given])
            assert outcomes(again) == outcomes(first)
            assert "interleaved" in codes(again)
            assert outcomes(again)["free"][1] >= tally["free"]

    def test_waits_are_intervals_too(self) -> None:
        rows = []
        for step in range(30):
            for held in (3 * step, 200 + step):
                rows += classic(QUEUE, {60.0: held, float("inf"): step}, 9.0 * held, 60 * step)
        imported = read_exports(exposition(rows))
        assert {low for low, _ in buckets(imported).values()} == {0}
        assert buckets(imported)[0.0, 60.0][1] >= 29 * 4
        assert "interleaved" in codes(imported)

    def test_deltas_of_several_processes_at_one_time_are_an_interval(self) -> None:
        lines = [
            otlp(number(n, at - 60, at, outcome="free"), temporality=1, resource={"service.name": "ai-horde"})
            for at in range(60, 1800, 60)
            for n in (5, 7)
        ]
        imported = read_exports(b"".join(lines))
        assert outcomes(imported) == {"free": (0, 29 * 12)}
        assert "interleaved" in codes(imported)

    def test_a_scrape_that_is_there_twice_at_odds_is_a_conflict_and_no_more(self) -> None:
        rows = [(decision(outcome), 60.0 * step, 10.0 + step) for step in range(60) for outcome in ("free", "refused")]
        imported = read_exports(exposition([*rows, (decision("free"), 600, 3), (decision("refused"), 600, 4)]))
        assert outcomes(imported) == {"free": (59, 59), "refused": (59, 59)}
        assert codes(imported) == {"conflict"}


@pytest.mark.parametrize("twice", [0, 1, 3])
def test_a_sample_told_twice_alike_counts_once_wherever_it_stands(twice: int) -> None:
    rows = [(decision(outcome), 60.0 * step, 2.0 * step + 1) for outcome in ("free", "refused") for step in range(2)]
    again = [*rows, rows[twice]]
    assert outcomes(read_exports(exposition(again))) == outcomes(read_exports(exposition(rows)))


def test_a_grafana_table_whose_first_moment_stands_twice_is_read() -> None:
    name = '"horde_text_free_allowance_decisions{horde_outcome=""free""}"'
    lines = [f'"Time",{name}', "1790000000000,1", "1790000000000,1", '1790000060000,"1,443"']
    assert outcomes(read_exports("\r\n".join(lines).encode())) == {"free": (1442.0, 1442.0)}
