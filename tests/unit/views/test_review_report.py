"""The HTML report: one file, nothing from outside, hostile text harmless, sections without data say so."""

import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser

import polars as pl
import pytest

from horde_policy.errors import Problem
from horde_policy.frames.decisions import DECISIONS
from horde_policy.frames.waits import WAIT_SUMS, WAITS
from horde_policy.review.exported import Exported, ExportFile
from horde_policy.review.findings import review_week
from horde_policy.settings import AllowanceSettings
from horde_policy.views.finding_text import SECTION_TITLES, finding_text
from horde_policy.views.report import SYNTHETIC_NOTE, report_html
from horde_policy.views.text import escape_html
from tests.unit.review.weeks import made_week

AT = datetime(2026, 11, 29, 12, tzinfo=UTC)
HOSTILE = "</script><script>alert(1)</script><img src=http://evil.example/x.png onerror=alert(2)>\"'&\u202e"
NOTHING = Exported(decisions=DECISIONS.empty(), waits=WAITS.empty(), wait_sums=WAIT_SUMS.empty())


class Outline(HTMLParser):
    """Collects tags, addresses and the text of scripts."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.ids: list[str] = []
        self.scripts: list[str] = []
        self._script = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        values = dict(attrs)
        self.addresses += [value for name, value in attrs if name in ("href", "src", "action", "srcset", "data") and value]
        if values.get("id"):
            self.ids.append(str(values["id"]))
        if tag == "script":
            self._script = True
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self._script = self._script and tag != "script"

    def handle_data(self, data: str) -> None:
        if self._script:
            self.scripts[-1] += data


def outline(text: str) -> Outline:
    found = Outline()
    found.feed(text)
    return found


def hostile_week() -> Exported:
    made = made_week(hours=30)
    return replace(
        made,
        decisions=made.decisions.with_columns(pl.lit(HOSTILE).alias("instance")),
        title=HOSTILE,
        files=(ExportFile(name=HOSTILE, form="exposition", samples=5, skipped=1, first=AT, last=None),),
        problems=(Problem("p", HOSTILE, HOSTILE),),
    )


@pytest.fixture(scope="module")
def report() -> str:
    return report_html(review_week(made_week(), AllowanceSettings()), made_at=AT)


def test_it_asks_for_nothing_from_outside(report: str) -> None:
    found = outline(report)
    assert found.addresses
    assert all(address.startswith("#") for address in found.addresses)
    assert "default-src 'none'" in report
    assert not {"link", "iframe", "img", "object", "embed", "base", "form"} & set(found.tags)
    assert found.tags.count("figure") == len([script for script in found.scripts if script.startswith('{"data"')]) >= 8


def test_every_finding_and_section_is_in_it(report: str) -> None:
    week = review_week(made_week(), AllowanceSettings())
    for finding in week.findings:
        text = finding_text(finding)
        for sentence in (text.sentence, *text.details):
            assert escape_html(sentence) in report
    for title in SECTION_TITLES.values():
        assert escape_html(title) in report
    found = outline(report)
    assert {address.removeprefix("#") for address in found.addresses} <= set(found.ids)
    assert len(found.ids) == len(set(found.ids))
    assert SYNTHETIC_NOTE in report
    assert "made 29 Nov 2026 12:00:00 UTC" in report


def test_the_figures_are_whole_and_named(report: str) -> None:
    for script in outline(report).scripts:
        if script.startswith('{"data"'):
            figure = json.loads(script)
            assert figure["data"]
            assert figure["layout"]["xaxis"]["title"]["text"]
    labels = re.findall(r'role="img" aria-label="([^"]+)"', report)
    assert len(labels) == len(set(labels)) or len(labels) >= 8
    assert all(label.endswith(".") for label in labels)


def test_hostile_text_is_text() -> None:
    text = report_html(review_week(hostile_week(), AllowanceSettings()), made_at=AT, app_address="https://app.example")
    found = outline(text)
    assert "<script>alert" not in text
    assert "img" not in found.tags
    assert not any("alert(1)" in script and not script.startswith("{") for script in found.scripts[:-2])
    assert "\u202e" not in text
    assert escape_html(HOSTILE) in text
    assert all(address.startswith(("#", "https://app.example/")) for address in found.addresses)


def test_links_lead_to_the_app_where_one_is_named() -> None:
    text = report_html(review_week(made_week(hours=30), AllowanceSettings()), made_at=AT, app_address="https://app.example/x")
    addresses = outline(text).addresses
    assert "https://app.example/x/decisions?columns=requested_size" in addresses


def test_sections_without_data_say_so_and_nothing_is_drawn() -> None:
    text = report_html(review_week(NOTHING, AllowanceSettings()), made_at=AT)
    assert text.count('class="nothing"') == 5
    assert "figure" not in outline(text).tags
    assert "No process counted anything." in text
    assert SYNTHETIC_NOTE not in text


def test_other_settings_are_named() -> None:
    week = review_week(made_week(hours=30), AllowanceSettings(floor_tokens=256))
    assert "allowance settings: floor_tokens 256 (ceiling 4,096 tokens up to 60 s, floor 256 from 300 s)" in report_html(
        week, made_at=AT
    )
