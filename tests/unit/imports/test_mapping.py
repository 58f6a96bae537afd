"""Mapping files: what they say, and what is refused with its place, value and rule."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from horde_policy.errors import InputError
from horde_policy.imports import ExportFile, load_mapping, read_exports
from horde_policy.imports.mapping import mapping_of
from tests.unit.imports.writing import DECISIONS, decision, exposition, outcomes

WHOLE = """
time_zone = "Europe/Berlin"
lookback_s = 120
scraped_at = "modified"
instance_labels = ["pod"]

[labels]
requester = ["who", "whom"]

[values.outcome]
gratis = "free"

[files."monday.prom"]
scraped_at = 2026-11-23T01:00:00+01:00

[[series]]
file = "*.csv"
name = "horde:decisions:increase1h"
labels = { horde_outcome = "*" }
family = "decisions"
part = "value"
values = "increase"
range_s = 3600
set = { chat = "true" }
"""


def test_everything_that_a_file_can_say(tmp_path: Path) -> None:
    path = tmp_path / "mapping.toml"
    path.write_text(WHOLE, encoding="utf-8")
    mapping = load_mapping(path)
    assert str(mapping.time_zone) == "Europe/Berlin"
    assert mapping.lookback_s == 120
    assert mapping.labels == {"requester": ("who", "whom")}
    assert mapping.values == {"outcome": {"gratis": "free"}}
    assert mapping.scrape_time("monday.prom", None) == datetime(2026, 11, 23, tzinfo=UTC)
    assert mapping.scrape_time("other.prom", datetime(2026, 1, 1, tzinfo=UTC)) == datetime(2026, 1, 1, tzinfo=UTC)
    (rule,) = mapping.series
    assert (rule.values, rule.range_s, rule.set) == ("increase", 3600, {"chat": "true"})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("labels = 5", "mapping file, labels: 5 must be a table"),
        ("label = {}", "'label' must be one of labels, values"),
        ("[labels]\nsize = 'a'", "'size' must be one of requester"),
        ("[labels]\noutcome = 5", "labels.outcome: 5 must be a text"),
        ("time_zone = 'Mars/Olympus'", "is not the name of a time zone"),
        ("time_zone = '../../etc/passwd'", "is not the name of a time zone"),
        ("lookback_s = -1", "lookback_s: -1 must be a number of seconds above 0"),
        ("lookback_s = nan", "must be a number of seconds above 0"),
        ("scraped_at = 2026-11-23", "must be an instant with its zone"),
        ("scraped_at = 2026-11-23T00:00:00", "must be an instant with its zone"),
        ("[files.a]\nat = 1", "files.a.scraped_at"),
        ("series = 5", "must be a list of tables"),
        ("[[series]]\nfamily = 'waits'", "series 1, family: 'waits' must be one of decisions"),
        ("[[series]]\nname = 'a'", "series 1, family: None must be one of"),
        ("[[series]]\nfamily = 'queue'\nvalues = 'increase'", "needs range_s"),
        ("[[series]]\nfamily = 'queue'\nset = { size = 'a' }", "series 1, set: 'size' must be one of"),
        ("[[series]]\nfamily = 'queue'\nfamly = 'a'", "'famly' must be one of"),
        ("a = [", "is not TOML"),
    ],
)
def test_a_senseless_entry_is_refused_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "mapping.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as refusal:
        load_mapping(path)
    assert message in str(refusal.value)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        load_mapping(tmp_path / "none.toml")


def test_series_that_the_mapping_ignores_are_counted_as_such() -> None:
    text = exposition(
        [(decision("free", "a"), at, 1.0 + at) for at in (0, 60)] + [(decision("free", "test"), at, 1.0 + at) for at in (0, 60)]
    )
    rule = {"name": "*", "labels": {"instance": "test"}, "family": "ignore"}
    imported = read_exports(text, mapping=mapping_of({"series": [rule]}))
    assert outcomes(imported) == {"free": (60, 60)}
    assert [(one.reason, one.count) for one in imported.report.files[0].skipped] == [("left out by the mapping", 2)]


def test_labels_that_tell_processes_apart_can_be_said() -> None:
    rows = [
        (DECISIONS + f'{{shard="{shard}",horde_outcome="free"}}', at, value)
        for shard, values in (("1", (9, 12)), ("2", (50, 2)))
        for at, value in zip((0, 60), values, strict=True)
    ]
    plain, told = (
        read_exports(exposition(rows)),
        read_exports(exposition(rows), mapping=mapping_of({"instance_labels": ["shard"]})),
    )
    # by default both shards are one process, so that the fall of one resets the other
    assert outcomes(plain) == {"free": (12 + 2, 14)}
    assert outcomes(told) == {"free": (3 + 2, 5)}


def test_the_time_of_the_file_itself(tmp_path: Path) -> None:
    import os

    for name, value, at in (("a", 5, 1_790_000_000), ("b", 9, 1_790_000_300)):
        path = tmp_path / f"{name}.prom"
        path.write_text(f"{decision('free')} {value}\n", encoding="utf-8")
        os.utime(path, (at, at))
    imported = read_exports(tmp_path, mapping=mapping_of({"scraped_at": "modified"}))
    assert outcomes(imported) == {"free": (4, 4)}


def test_bytes_have_no_time_of_their_own() -> None:
    imported = read_exports(
        ExportFile("a.prom", f"{decision('free')} 5\n".encode()), mapping=mapping_of({"scraped_at": "modified"})
    )
    assert imported.decisions["interval_end"].to_list() == [None]
