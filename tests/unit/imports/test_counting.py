"""exports.md, "Counting": each rule with the right value written down by hand."""

import json
from math import inf
from typing import ClassVar

import pytest

from horde_policy.imports import Mapping, read_exports
from horde_policy.imports.mapping import mapping_of
from horde_policy.review.exported import exported_from
from horde_policy.review.findings import review_week
from horde_policy.settings import AllowanceSettings
from horde_policy.views.finding_text import finding_text
from tests.unit.imports.writing import (
    DECISIONS,
    QUEUE,
    buckets,
    classic,
    codes,
    decision,
    exposition,
    histogram,
    intervals,
    matrix,
    metric,
    number,
    otlp,
    outcomes,
    sums,
)

EVERY_MINUTE = range(0, 600, 60)


class TestRestarts:
    """Rule 1: a restart resets the whole instance."""

    def test_a_series_that_has_passed_its_old_value_is_reset_with_the_one_that_fell(self) -> None:
        text = exposition(
            [
                (decision("free"), 0, 100),
                (decision("refused"), 0, 3),
                (decision("free"), 60, 110),
                (decision("refused"), 60, 4),
                # restart between 60 and 120: 7 free and 6 refused since; refused hides it
                (decision("free"), 120, 7),
                (decision("refused"), 120, 6),
                (decision("free"), 180, 9),
                (decision("refused"), 180, 6),
            ]
        )
        imported = read_exports(text)
        assert outcomes(imported) == {"free": (10 + 7 + 2, 19), "refused": (1 + 6, 7)}
        assert [when.timestamp() - 1_790_000_000 for when in imported.report.instances[0].restarts] == [120]

    def test_one_process_that_restarts_leaves_the_other_alone(self) -> None:
        text = exposition(
            [
                (decision("free", "a"), 0, 100),
                (decision("free", "b"), 0, 50),
                (decision("free", "a"), 60, 2),
                (decision("free", "b"), 60, 53),
            ]
        )
        assert outcomes(read_exports(text)) == {"free": (2 + 3, 5)}

    def test_the_fall_of_a_counter_resets_the_histograms_of_its_process(self) -> None:
        before = classic(QUEUE, {60.0: 1, inf: 0}, 30.0, 0, instance="a")
        after = classic(QUEUE, {60.0: 2, inf: 1}, 500.0, 60, instance="a")
        text = exposition([(decision("free"), 0, 9), *before, (decision("free"), 60, 1), *after])
        imported = read_exports(text)
        assert buckets(imported) == {(0.0, 60.0): (2, 2), (60.0, inf): (1, 1)}
        assert sums(imported) == (3, 500.0)

    def test_the_fall_of_one_bucket_resets_the_whole_histogram_and_its_sum_follows(self) -> None:
        before = classic(QUEUE, {60.0: 5, 300.0: 0, inf: 0}, 100.0, 0)
        after = classic(QUEUE, {60.0: 4, 300.0: 2, inf: 0}, 700.0, 60)
        imported = read_exports(exposition([*before, *after]))
        assert buckets(imported) == {(0.0, 60.0): (4, 4), (60.0, 300.0): (2, 2)}
        assert sums(imported) == (6, 700.0)

    def test_a_sum_that_falls_tells_a_restart_that_every_count_hides(self) -> None:
        before = classic(QUEUE, {60.0: 1, inf: 0}, 50.0, 0)
        after = classic(QUEUE, {60.0: 2, inf: 0}, 3.0, 60)
        imported = read_exports(exposition([*before, *after]))
        assert buckets(imported) == {(0.0, 60.0): (2, 2)}
        assert sums(imported) == (2, 3.0)

    def test_a_bucket_that_lost_tells_a_restart_that_every_cumulative_count_hides(self) -> None:
        before = classic(QUEUE, {10.0: 0, 60.0: 2, inf: 0}, 100.0, 0)
        after = classic(QUEUE, {10.0: 2, 60.0: 0, inf: 0}, 101.0, 60)
        imported = read_exports(exposition([*before, *after]))
        assert buckets(imported) == {(0.0, 10.0): (2, 2)}
        assert sums(imported) == (2, 101.0)

    def test_a_series_that_is_gone_while_its_process_stays_is_a_restart(self) -> None:
        text = exposition(
            [
                (decision("free"), 0, 3),
                (decision("funded"), 0, 40),
                (decision("free"), 60, 8),  # funded is gone: the 8 are all new
                (decision("free"), 120, 9),
                (decision("funded"), 120, 41),
                (decision("free"), 180, 9),
                (decision("funded"), 180, 41),
            ]
        )
        assert outcomes(read_exports(text)) == {"free": (8 + 1, 9), "funded": (41, 41)}

    def test_a_series_that_a_file_cut_short_lacks_at_its_last_look_is_no_restart(self) -> None:
        text = exposition(
            [
                (decision("free"), 0, 3),
                (decision("funded"), 0, 40),
                (decision("free"), 60, 5),
                (decision("funded"), 60, 40),
                (decision("free"), 120, 6),
            ]
        )
        assert outcomes(read_exports(text)) == {"free": (3, 3)}

    def test_a_new_start_time_resets_every_series_that_carries_it(self) -> None:
        lines = [
            otlp(number(50, 0, 60, outcome="free"), number(3, 0, 60, outcome="refused")),
            otlp(number(60, 90, 120, outcome="free"), number(4, 90, 120, outcome="refused")),
        ]
        assert outcomes(read_exports(b"".join(lines))) == {"free": (110, 110), "refused": (7, 7)}

    def test_created_series_are_start_times(self) -> None:
        created = DECISIONS + '_created{instance="a",horde_outcome="free"}'
        total = DECISIONS + '_total{instance="a",horde_outcome="free"}'
        text = (
            f"{total} 5 1790000000\n{created} 1789999990.5 1790000000\n"
            f"{total} 6 1790000060\n{created} 1790000010.25 1790000060\n# EOF\n"
        )
        imported = read_exports(text.encode())
        # both lives began no more than a step before the first look: 5 and 6 in full, though 6 is no fall
        assert outcomes(imported) == {"free": (11, 11)}


class TestForgottenSeries:
    """A collector that makes cumulative sums of deltas forgets a series after five silent minutes (horde.md 7.1)."""

    def test_a_fall_after_silence_is_the_series_own_while_others_go_on(self) -> None:
        busy = [(decision("free"), at, 1000 + at // 6) for at in range(0, 1800, 60)]
        rare = [
            (decision("refused"), 60, 4),
            (decision("refused"), 120, 5),
            (decision("refused"), 900, 1),
            (decision("refused"), 1500, 1),
        ]
        gone = [(decision("funded"), at, 1) for at in (60, 300, 540, 780)]
        imported = read_exports(exposition(sorted([*busy, *rare, *gone], key=lambda one: one[1])))
        assert outcomes(imported)["free"] == (290, 290)
        assert imported.report.instances[0].restarts == ()
        # 4 at 60 may have been counted before the window; then 5 - 4, and after each silence 1 from nothing
        assert outcomes(imported)["refused"] == (1 + 1 + 1, 4 + 1 + 1 + 1)

    def test_in_coarse_steps_too(self) -> None:
        busy = [(metric("free"), [(at, 10_000 + at // 10) for at in range(0, 36_000, 900)])]
        rare = [(metric("refused"), [(at, 7 if at < 9_000 else 2) for at in range(0, 36_000, 900)])]
        imported = read_exports(matrix(dict([*busy, *rare])))
        assert outcomes(imported) == {"free": (3510, 3510), "refused": (2, 2)}
        assert imported.report.instances[0].own_restarts == 1


class TestLookBack:
    """Rule 2: query_range repeats the last value of a series that went away."""

    def test_old_values_after_a_restart_are_not_counted_again(self) -> None:
        answer = matrix(
            {
                metric("free"): [(0, 100), (60, 105), (120, 4), (180, 6), (240, 9), (300, 9), (360, 10), (420, 11)],
                # not born again before 420; the server repeats 50 up to 300
                metric("refused"): [(0, 50), (60, 50), (120, 50), (180, 50), (240, 50), (300, 50), (420, 2)],
                # born again at 240, after repeats
                metric("funded"): [(0, 20), (60, 20), (120, 20), (180, 20), (240, 3), (300, 3), (360, 3), (420, 3)],
            }
        )
        imported = read_exports(answer)
        assert outcomes(imported) == {"free": (5 + 4 + 2 + 3 + 1 + 1, 16), "refused": (2, 2), "funded": (3, 3)}
        assert len(imported.report.instances[0].restarts) == 1

    def test_a_value_that_lasts_longer_than_the_look_back_is_there(self) -> None:
        rows = {metric("free"): [(at, 100 + at // 60 if at < 120 else at // 60) for at in range(0, 900, 60)]}
        rows[metric("refused")] = [(at, 1) for at in range(0, 900, 60)]
        imported = read_exports(matrix(rows))
        assert outcomes(imported) == {"free": (1 + 14, 15), "refused": (1, 1)}

    def test_the_same_in_a_raw_exposition_is_a_series_that_grew_to_its_old_value(self) -> None:
        text = exposition(
            [
                (decision("free"), 0, 100),
                (decision("refused"), 0, 1),
                (decision("free"), 60, 4),
                (decision("refused"), 60, 1),
                (decision("free"), 120, 5),
                (decision("refused"), 120, 1),
            ]
        )
        assert outcomes(read_exports(text)) == {"free": (5, 5), "refused": (1, 1)}


class TestFirstValues:
    """Rule 3: baseline, born inside, or not known."""

    def test_what_the_first_look_shows_was_counted_before(self) -> None:
        imported = read_exports(exposition([(decision("free"), 0, 40), (decision("free"), 60, 42)]))
        assert intervals(imported) == [(0, 60, "free", 2, 2)]
        assert imported.before.decisions["count_high"].to_list() == [40]

    def test_a_series_born_while_its_process_is_watched_counts_in_full(self) -> None:
        text = exposition([(decision("free"), 0, 40), (decision("free"), 60, 40), (decision("refused"), 60, 3)])
        assert intervals(read_exports(text)) == [(0, 60, "refused", 3, 3)]

    def test_a_process_that_appears_later_without_a_start_time_is_an_interval(self) -> None:
        watched = [(decision("free", "a"), at, 10) for at in EVERY_MINUTE]
        late = [(decision("free", "b"), 240, 5), (decision("free", "b"), 300, 6)]
        imported = read_exports(exposition([*watched, *late]))
        assert intervals(imported) == [(0, 240, "free", 0, 5), (240, 300, "free", 1, 1)]

    def test_a_process_first_seen_within_one_step_was_there_from_the_beginning(self) -> None:
        text = exposition(
            [(decision("free", name), at + late, 50 + at) for name, late in (("a", 0), ("b", 30)) for at in (0, 60, 120)]
        )
        assert outcomes(read_exports(text)) == {"free": (240, 240)}

    @pytest.mark.parametrize(
        ("start", "low", "high", "before"),
        [(30, 8, 8, 0), (-86_400, 3, 3, 5), (0, 8, 8, 0)],
        ids=["born inside", "existed before", "began one step before the first look"],
    )
    def test_a_start_time_decides(self, start: float, low: float, high: float, before: float) -> None:
        lines = otlp(number(5, start, 60, outcome="free")) + otlp(number(8, start, 120, outcome="free"))
        imported = read_exports(lines)
        assert outcomes(imported) == {"free": (low, high)}
        assert imported.before.decisions["count_high"].sum() == before

    def test_a_stream_taken_over_in_mid_life_begins_at_its_first_value(self) -> None:
        lines = otlp(number(500, 60, 60, outcome="free")) + otlp(number(503, 60, 120, outcome="free"))
        assert intervals(read_exports(lines)) == [(60, 120, "free", 3, 3)]


class TestStartTimes:
    """Rules 4 and 5: start times of series, and of processes that write the same series."""

    def test_a_later_start_of_one_series_is_no_restart_of_the_process(self) -> None:
        lines = [
            otlp(number(5, 0, 60, outcome="free")),
            otlp(number(7, 0, 120, outcome="free"), number(1, 100, 120, outcome="refused")),
            otlp(number(8, 0, 180, outcome="free"), number(1, 100, 180, outcome="refused")),
        ]
        imported = read_exports(b"".join(lines))
        assert outcomes(imported) == {"free": (8, 8), "refused": (1, 1)}
        assert imported.report.instances[0].restarts == ()

    def test_processes_without_an_id_are_told_apart_by_their_start_times(self) -> None:
        lines = []
        for minute in range(1, 11):
            lines.append(otlp(number(100 + minute, 0, 60 * minute, outcome="free"), resource={"service.name": "ai-horde"}))
            lines.append(otlp(number(minute, 20, 60 * minute + 7, outcome="free"), resource={"service.name": "ai-horde"}))
        imported = read_exports(b"".join(lines))
        assert outcomes(imported) == {"free": (110 + 10, 120)}

    def test_without_start_times_falls_tell_nothing_and_that_is_said(self) -> None:
        text = exposition(
            [
                row
                for minute in range(30)
                for row in ((DECISIONS, 60 * minute, 1000 + minute), (DECISIONS, 60 * minute + 30, 5 + minute))
            ]
        )
        imported = read_exports(text)
        assert "interleaved" in codes(imported)
        assert imported.decisions["count_low"].sum() == 0
        assert imported.decisions["count_high"].sum() >= 58


class TestDelta:
    """Rule 6: what a lost export counted is lost; what lies before the first export belongs to no hour."""

    def test_deltas_are_added_and_the_lost_time_is_said(self) -> None:
        lines = [otlp(number(n, at - 60, at, outcome="free"), temporality=1) for n, at in ((5, 60), (7, 120), (2, 300))]
        imported = read_exports(b"".join(lines))
        assert intervals(imported) == [(0, 60, "free", 5, 5), (60, 120, "free", 7, 7), (240, 300, "free", 2, 2)]
        assert imported.report.uncovered_s == 120
        assert "uncovered" in codes(imported)

    def test_time_that_several_processes_lack_is_named_as_a_sum(self) -> None:
        lost = {"a": (120, 180), "b": (180, 240, 300)}
        lines = [
            otlp(number(5, at - 60, at, outcome="free"), temporality=1, resource={"service.instance.id": instance})
            for instance in lost
            for at in range(60, 600, 60)
            if at not in lost[instance]
        ]
        imported = read_exports(b"".join(lines))
        assert {one.instance: one.lost_s for one in imported.report.instances} == {'instance="a"': 120, 'instance="b"': 180}
        (said,) = (problem.text for problem in imported.problems if problem.code == "uncovered")
        assert said.startswith("no export covers 300 s, added up over 2 processes; the most of one is 180 s, of 'instance=\"b\"'")
        week = review_week(exported_from(imported), AllowanceSettings())
        (text,) = (finding_text(one).sentence for one in week.findings if one.code == "uncovered")
        assert (
            text
            == "No export covers 5 min, added up over 2 processes, 27.8 % of the range for each: what was counted then is lost."
        )

    def test_what_was_counted_before_the_first_export_is_apart(self) -> None:
        lines = [
            otlp(number(n, start, at, outcome="free"), temporality=1)
            for n, start, at in ((900, -7200, 0), (7, 0, 60), (2, 60, 120))
        ]
        imported = read_exports(b"".join(lines))
        assert outcomes(imported) == {"free": (9, 9)}
        assert imported.before.decisions["count_high"].to_list() == [900]

    def test_an_export_that_is_there_twice_counts_once(self) -> None:
        lines = [otlp(number(n, at - 60, at, outcome="free"), temporality=1) for n, at in ((5, 60), (7, 120), (7, 180))]
        assert outcomes(read_exports([b"".join(lines), lines[1] + lines[2]])) == {"free": (19, 19)}

    def test_deltas_whose_time_a_cumulative_record_of_the_same_counter_covers_are_left_out(self) -> None:
        deltas = [otlp(number(n, at - 60, at, outcome="free"), temporality=1) for n, at in ((5, 60), (7, 120), (2, 180))]
        sums = [otlp(number(n, 0, at, outcome="free")) for n, at in ((5, 60), (12, 120))]
        imported = read_exports([b"".join(deltas), b"".join(sums)])
        assert outcomes(imported) == {"free": (14, 14)}
        assert "two_forms" in codes(imported)

    def test_delta_histograms(self) -> None:
        lines = [
            otlp(
                histogram([1, 2, 0], [60, 300], 400.0, at - 60, at),
                name="horde.text.queue_wait_seconds",
                temporality=1,
                kind="histogram",
            )
            for at in (60, 120)
        ]
        imported = read_exports(b"".join(lines))
        assert buckets(imported) == {(0.0, 60.0): (2, 2), (60.0, 300.0): (4, 4)}
        assert sums(imported) == (6, 800.0)


class TestIncreaseAnswers:
    """Rule 7: they carry no name, are to be added, and need a mapping."""

    ANSWER = matrix({json.dumps({"horde_outcome": "free"}): [(0, 10.5), (3600, 12.25), (7200, 0)]})
    MAPPING: ClassVar = {"series": [{"name": "", "family": "decisions", "values": "increase", "range_s": 3600}]}

    def test_without_a_mapping_nothing_is_guessed(self) -> None:
        imported = read_exports(self.ANSWER)
        assert imported.decisions.height == 0
        assert {"needs_mapping", "nothing_understood"} <= codes(imported)
        assert [(skipped.count, skipped.subject) for skipped in imported.report.files[0].skipped] == [(3, "(no name)")]

    def test_they_are_added(self) -> None:
        imported = read_exports(self.ANSWER, mapping=mapping_of(self.MAPPING))
        assert intervals(imported) == [(-3600, 0, "free", 10.5, 10.5), (0, 3600, "free", 12.25, 12.25)]

    def test_ranges_that_overlap_are_not_added_twice(self) -> None:
        answer = matrix({json.dumps({"horde_outcome": "free"}): [(at, 60) for at in range(0, 7201, 600)]})
        imported = read_exports(answer, mapping=mapping_of(self.MAPPING))
        assert intervals(imported) == [(-3600, 0, "free", 60, 60), (0, 3600, "free", 60, 60), (3600, 7200, "free", 60, 60)]

    def test_a_rate_is_multiplied_by_its_range(self) -> None:
        answer = matrix({json.dumps({"horde_outcome": "free"}): [(0, 0.5), (60, 0.25)]})
        mapping = mapping_of({"series": [{"name": "", "family": "decisions", "values": "rate", "range_s": 60}]})
        assert outcomes(read_exports(answer, mapping=mapping)) == {"free": (45, 45)}

    def test_buckets_of_increase(self) -> None:
        answer = matrix(
            {json.dumps({"le": le}): [(0, value), (60, 0)] for le, value in (("60", 1.5), ("300.0", 4.0), ("+Inf", 4.5))}
        )
        mapping = mapping_of({"series": [{"name": "", "family": "queue", "values": "increase", "range_s": 60}]})
        assert buckets(read_exports(answer, mapping=mapping)) == {
            (0.0, 60.0): (1.5, 1.5),
            (60.0, 300.0): (2.5, 2.5),
            (300.0, inf): (0.5, 0.5),
        }


class TestMerging:
    """Rule 8: windows are joined without doubling the seam; overlapping and repeated files count once."""

    POINTS: ClassVar = [(at, at // 10) for at in range(0, 1200, 60)]

    def test_windows_of_one_range(self) -> None:
        windows = [matrix({metric("free"): part}) for part in (self.POINTS[:8], self.POINTS[7:15], self.POINTS[14:])]
        assert intervals(read_exports(windows)) == intervals(read_exports(matrix({metric("free"): self.POINTS})))
        assert outcomes(read_exports(windows)) == {"free": (114, 114)}

    def test_windows_one_after_the_other_in_a_file(self) -> None:
        windows = b"\n".join(matrix({metric("free"): part}) for part in (self.POINTS[:8], self.POINTS[7:]))
        assert outcomes(read_exports(windows)) == {"free": (114, 114)}

    def test_daily_files_that_do_not_touch(self) -> None:
        days = [
            exposition([(decision("free"), at, 100 + value) for at, value in part]) for part in (self.POINTS[:9], self.POINTS[9:])
        ]
        imported = read_exports(days)
        assert outcomes(imported) == {"free": (114, 114)}

    def test_the_same_file_twice_and_a_part_of_it(self) -> None:
        text = exposition([(decision("free"), at, 100 + value) for at, value in self.POINTS])
        lines = text.splitlines(keepends=True)
        assert outcomes(read_exports([text, text, b"".join(lines[3:9])])) == {"free": (114, 114)}

    def test_raw_samples_and_a_coarser_range_of_the_same_series(self) -> None:
        text = exposition([(decision("free"), at + 7, 100 + value) for at, value in self.POINTS])
        grid = matrix({metric("free"): [(at, 100 + (at - 60) // 10) for at in range(300, 1200, 300)]})
        assert outcomes(read_exports([grid, text])) == {"free": (114, 114)}

    def test_samples_out_of_order(self) -> None:
        rows = [(decision("free"), at, 100 + value) for at, value in self.POINTS]
        shuffled = [rows[(7 * place) % len(rows)] for place in range(len(rows))]
        assert intervals(read_exports(exposition(shuffled))) == intervals(read_exports(exposition(rows)))

    def test_two_values_at_one_time_are_a_problem_and_the_larger_stands(self) -> None:
        text = exposition(
            [(decision("free"), 0, 1), (decision("free"), 60, 5), (decision("free"), 60, 4), (decision("free"), 120, 6)]
        )
        imported = read_exports(text)
        assert outcomes(imported) == {"free": (5, 5)}
        assert "conflict" in codes(imported)

    def test_start_times_of_one_file_hold_for_another_that_has_none(self) -> None:
        points = [(number(value, 0, at, outcome="free"), at, value) for at, value in ((60, 5), (120, 9), (180, 12))]
        lines = b"".join(otlp(point) for point, _, _ in points)
        scraped = matrix(
            {
                json.dumps({"__name__": DECISIONS, "job": "ai-horde", "instance": "a", "horde_outcome": "free"}): [
                    (at + 20, v) for _, at, v in points
                ]
            }
        )
        assert outcomes(read_exports([lines, scraped])) == {"free": (12, 12)}

    def test_two_records_of_what_may_be_one_process_are_a_problem(self) -> None:
        lines = b"".join(otlp(number(value, 0, at, outcome="free")) for at, value in ((60, 5), (120, 9)))
        scraped = exposition([(decision("free", "host:9464"), 60, 5), (decision("free", "host:9464"), 120, 9)])
        assert "same_process" in codes(read_exports([lines, scraped]))


class TestBounds:
    """Rule 9: exactly 60.0 s and 300.0 s belong to the bucket that they bound."""

    def test_bounds_are_inclusive(self) -> None:
        rows = [*classic(QUEUE, {60.0: 0, 300.0: 0, inf: 0}, 0.0, 0), *classic(QUEUE, {60.0: 1, 300.0: 1, inf: 0}, 360.0, 60)]
        imported = read_exports(exposition(rows))
        # one wait of exactly 60 s and one of exactly 300 s
        assert buckets(imported) == {(0.0, 60.0): (1, 1), (60.0, 300.0): (1, 1)}
        assert sums(imported) == (2, 360.0)


class TestWindow:
    def test_a_window_cuts_intervals_and_what_crosses_its_edge_is_between_none_and_all(self) -> None:
        from datetime import UTC, datetime, timedelta

        begin = datetime(2026, 9, 21, 14, 13, 20, tzinfo=UTC)
        text = exposition([(decision("free"), at, at // 10) for at in range(0, 600, 60)])
        imported = read_exports(text, window=(begin + timedelta(seconds=90), begin + timedelta(seconds=240)))
        assert intervals(imported) == [(60, 120, "free", 0, 6), (120, 180, "free", 6, 6), (180, 240, "free", 6, 6)]

    def test_gaps_are_reported(self) -> None:
        text = exposition([(decision("free"), at, at // 10) for at in (*range(0, 600, 60), *range(3000, 3600, 60))])
        imported = read_exports(text)
        gaps = imported.report.instances[0].gaps
        assert [((gap.end - gap.start).total_seconds(), gap.lost) for gap in gaps] == [(2460, False)]
        assert outcomes(imported) == {"free": (354, 354)}


def test_an_empty_mapping_is_the_default() -> None:
    assert mapping_of({}) == Mapping()
