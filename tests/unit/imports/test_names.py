"""exports.md 11: names and labels in every spelling, each with the right value written down by hand."""

from math import inf

import pytest

from horde_policy.imports import read_exports
from horde_policy.imports.mapping import mapping_of
from tests.unit.imports.writing import (
    DECISIONS,
    PLAIN,
    QUEUE,
    buckets,
    classic,
    codes,
    decision,
    exposition,
    outcomes,
    sums,
)


class TestNamesAndLabels:
    """Rule 11."""

    @pytest.mark.parametrize(
        "name",
        [
            "horde_text_free_allowance_decisions",
            "horde_text_free_allowance_decisions_total",
            "horde_text_free_allowance_decisions_requests_total",
            "horde.text.free_allowance.decisions",
        ],
    )
    def test_the_counter_by_any_name(self, name: str) -> None:
        assert outcomes(
            read_exports(exposition([(name + '{horde_outcome="free"}', 0, 1), (name + '{horde_outcome="free"}', 60, 4)]))
        ) == {"free": (3, 3)}

    def test_a_quoted_name_inside_the_braces(self) -> None:
        rows = [('{"horde.text.free_allowance.decisions",horde_outcome="free"}', at, 1.0 + at) for at in (0, 60)]
        assert outcomes(read_exports(exposition(rows))) == {"free": (60, 60)}

    @pytest.mark.parametrize("name", [QUEUE, "horde_text_queue_wait", "horde_text_queue_wait_seconds_seconds"])
    def test_the_histogram_with_and_without_its_unit(self, name: str) -> None:
        rows = [*classic(name, {60.0: 0, inf: 0}, 0, 0), *classic(name, {60.0: 2, inf: 1}, 99.0, 60)]
        imported = read_exports(exposition(rows))
        assert buckets(imported) == {(0.0, 60.0): (2, 2), (60.0, inf): (1, 1)}
        assert sums(imported) == (3, 99.0)

    def test_milliseconds(self) -> None:
        name = "horde_text_queue_wait_milliseconds"
        rows = [*classic(name, {60_000.0: 0, inf: 0}, 0, 0), *classic(name, {60_000.0: 2, inf: 1}, 99_000.0, 60)]
        imported = read_exports(exposition(rows))
        assert buckets(imported) == {(0.0, 60.0): (2, 2), (60.0, inf): (1, 1)}
        assert sums(imported) == (3, 99.0)

    @pytest.mark.parametrize(
        "spelled",
        [
            {"horde_requester": "anonymous", "horde_outcome": "free", "horde_requested_size": "<=512",
             "horde_allowance_size": "2049-4096", "horde_chat": "true"},
            {"requester": "anonymous", "outcome": "free", "requested_size": "<=512",
             "allowance_size": "2049-4096", "chat": "True"},
            {"horde_requester": "Anonymous", "horde_outcome": "FREE", "horde_requested_size_bucket": "le_512",
             "horde_allowance_size_bucket": "2049–4096", "horde_is_chat": "1"},
            {"horde.requester": "anonymous", "horde.outcome": "free", "horde_requested": "0-512",
             "horde_allowance": "2049..4096", "is_chat": '\\"true\\"'},
        ],
    )  # fmt: skip
    def test_every_spelling_of_the_labels(self, spelled: dict[str, str]) -> None:
        inside = ",".join(f'"{name}"="{text}"' if "." in name else f'{name}="{text}"' for name, text in spelled.items())
        imported = read_exports(exposition([(DECISIONS + "{" + inside + "}", at, 1.0 + at) for at in (0, 60)]))
        row = imported.decisions.select("requester", "outcome", "requested_size", "allowance_size", "chat").row(0)
        assert row == ("anonymous", "free", "<=512", "2049-4096", True)
        assert not imported.problems

    def test_bounds_spelled_60_and_60_0_are_one_series(self) -> None:
        rows = [
            (QUEUE + f'_bucket{{le="{le}"}}', at, value)
            for le, at, value in (("60", 0, 1.0), ("60.0", 60, 3.0), ("+Inf", 0, 1.0), ("+Inf", 60, 4.0))
        ]
        assert buckets(read_exports(exposition(rows))) == {(0.0, 60.0): (2, 2), (60.0, inf): (1, 1)}

    def test_created_gauges_are_not_counted(self) -> None:
        rows = [(f'{DECISIONS}_created{{horde_outcome="free"}}', at, 1.79e9) for at in (0, 60)]
        imported = read_exports(exposition([*rows, (decision("free", ""), 0, 1), (decision("free", ""), 60, 2)]))
        assert imported.decisions["count_high"].sum() <= 2

    def test_a_word_that_the_rule_does_not_have_is_counted_without_it_and_named(self) -> None:
        rows = [(DECISIONS + '{horde_outcome="queued",horde_requester="anonymous",shard="7"}', at, 1.0 + at) for at in (0, 60)]
        imported = read_exports(exposition(rows))
        assert imported.decisions.select("outcome", "requester", "count_low").rows() == [(None, "anonymous", 60)]
        (file,) = imported.report.files
        assert [(word.reason, word.subject, word.count) for word in file.words] == [("outcome", "queued", 2)]
        assert file.labels == {"shard": 1}
        assert file.spellings == {"outcome": ("horde_outcome",), "requester": ("horde_requester",)}
        assert codes(imported) == {"unknown_word"}

    def test_what_is_not_understood_is_listed_with_counts(self) -> None:
        text = (
            PLAIN
            + b'process_cpu_seconds_total 5 1790000000000\nup{a="b"} 1 1790000000000\nup{a="c"} 1 1790000000000\n'
            + QUEUE.encode()
            + b"_max 7\n"
        )
        (file,) = read_exports(text).report.files
        assert {(one.reason, one.subject): one.count for one in file.skipped} == {
            ("another metric", "process_cpu_seconds_total"): 1,
            ("another metric", "up"): 2,
            ("a name that looks like one of the three but is not: a mapping can say", QUEUE + "_max"): 1,
        }
        assert file.samples == 2

    def test_a_mapping_overrides(self) -> None:
        mapping = mapping_of(
            {
                "labels": {"outcome": ["what"]},
                "values": {"outcome": {"gratis": "free"}},
                "series": [{"name": "free_text_*", "family": "decisions", "set": {"requester": "registered"}}],
            }
        )
        rows = [('free_text_total{what="gratis"}', at, 1.0 + at) for at in (0, 60)]
        imported = read_exports(exposition(rows), mapping=mapping)
        assert imported.decisions.select("requester", "outcome", "count_low").rows() == [("registered", "free", 60)]
