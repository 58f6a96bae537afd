import re
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horde_policy.review.waits import Quantile
from horde_policy.settings import AllowanceSettings
from horde_policy.units import with_range
from horde_policy.views.replay_runs import baseline_of
from horde_policy.views.review_words import quantile_text
from horde_policy.views.text import (
    code_span,
    escape_html,
    escape_markdown,
    escape_plotly,
    range_text,
    seconds,
    shortened,
    shortened_name,
    speed,
    tokens_short,
    visible,
)

HOSTILE = [
    "![x](http://192.0.2.1/p.png)",
    "[link](javascript:alert(1))",
    "<img src=x onerror=alert(1)>",
    "**bold** _it_ ~~s~~ `code` ``two``",
    ":red[alarm] :material/home: :smile:",
    "$e = mc^2$ $$x$$",
    "http://192.0.2.1/x www.example.org a@example.org",
    "# heading\n- list\n> quote",
    "a|b\n-|-\nc|d",
    "evil\u202egnp.exe",
    "line\r\nbreak\x00\x1b[31m",
    "=1+1",
    "x" * 200,
    "",
    "   ",
    "`",
    "\\",
    "&lt;b&gt;",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_code_span_holds_the_whole_name_and_nothing_ends_it_early(name: str) -> None:
    span = code_span(name)
    if not name.strip():
        assert span == "(empty name)"
        return
    fence = re.match(r"`+", span)
    assert fence is not None
    assert span.endswith(fence.group())
    inside = span[len(fence.group()) : -len(fence.group())]
    assert inside.strip() == visible(name).strip()
    assert fence.group() not in re.findall(r"`+", inside), "a run of backticks as long as the fence would end it"
    assert "\n" not in span


@pytest.mark.parametrize("name", HOSTILE)
def test_no_punctuation_is_left_bare_in_escaped_markdown(name: str) -> None:
    escaped = escape_markdown(name)
    bare = re.sub(r"\\[!-/:-@\[-`{-~]", "", escaped)
    assert not re.search(r"[!-/:-@\[-`{-~]", bare)
    assert escaped.replace("\u2060", "").replace("\\\\", "\0").replace("\\", "").replace("\0", "\\") == visible(name)
    assert "://" not in escaped.replace("\\", ""), "a bare link would be made of it"


@pytest.mark.parametrize("name", HOSTILE)
def test_escaped_plotly_text_has_no_tag_and_no_formula(name: str) -> None:
    escaped = escape_plotly(name)
    assert "<" not in escaped
    assert ">" not in escaped
    assert not re.search(r"(?<!\u2060)\$", escaped)
    assert unescape(escaped).replace("\u2060", "") == visible(name)


@pytest.mark.parametrize("name", HOSTILE)
def test_escaped_html_is_one_text_and_no_element(name: str) -> None:
    seen: list[str] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            raise AssertionError(tag)

        def handle_data(self, data: str) -> None:
            seen.append(data)

    Reader().feed(escape_html(name))
    assert "".join(seen) == visible(name)
    assert '"' not in escape_html(name)


@given(st.text())
def test_what_is_visible_has_no_control_and_no_direction_mark(text: str) -> None:
    shown = visible(text)
    assert not re.search(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\u2028\u2029]", shown)
    if text.isascii() and text.isprintable():
        assert shown == text


@given(st.text(), st.integers(1, 50))
def test_a_shortened_text_is_never_longer(text: str, characters: int) -> None:
    assert len(shortened(text, characters)) <= max(characters, 0)


@pytest.mark.parametrize(
    ("wait_s", "text"),
    [
        (0.0, "0 s"),
        (0.001, "< 1 s"),
        (1.0, "1 s"),
        (59.6, "60 s"),
        (300.0, "300 s"),
        (599.4, "599 s"),
        (600.0, "10 min"),
        (3570.1, "1 h 0 min"),
        (86_400.0, "1 d 0 h"),
        (float("inf"), "without end"),
        (None, "—"),
    ],
)
def test_seconds(wait_s: float | None, text: str) -> None:
    assert seconds(wait_s) == text


@given(st.floats(0, 1e15))
def test_every_wait_reads_as_a_number_with_a_unit(wait_s: float) -> None:
    assert re.fullmatch(r"(< )?\d+ (s|min)|\d+ h \d+ min|\d+ d \d+ h", seconds(wait_s))


@given(st.floats(0, 1e12))
def test_short_tokens_keep_three_digits(number: float) -> None:
    text = tokens_short(number)
    assert re.fullmatch(r"[\d,.]+( [kMG])?", text)
    value = float(text.split(" ")[0].replace(",", "")) * {"k": 1e3, "M": 1e6, "G": 1e9}.get(text[-1], 1)
    assert value == pytest.approx(number, rel=0.006, abs=0.51)


def test_speeds_keep_one_decimal_below_a_hundred() -> None:
    assert [speed(s) for s in (0.04, 9.96, 99.94, 100.0, 12_345.0)] == ["0.0", "10.0", "99.9", "100", "12,345"]


def test_a_range_of_one_value_is_written_as_that_value_in_one_place() -> None:
    assert baseline_of(AllowanceSettings(ceiling_tokens=512)).words.startswith("512 tokens at 60 to 300 s")
    assert range_text(512, 512) == "512"
    assert quantile_text(Quantile(0.5, 60.0, 60.0, 60.0, 61.0)) == "60 s"
    by_hand = re.compile(r" == .*\belse f\"\{[^}]*\} to \{[^}]*\}\"$", re.MULTILINE)
    package = Path(__file__).parents[3] / "horde_policy"
    assert [path.name for path in package.rglob("*.py") if by_hand.search(path.read_text(encoding="utf-8"))] == ["units.py"]


@pytest.mark.parametrize(
    ("value", "low", "high", "told"),
    [
        ("7.1 points", "5.4 points", "8.7 points", "7.1 points (5.4 to 8.7)"),
        ("+2 points", "−1 points", "+5 points", "+2 points (−1 to +5)"),
        ("12,345 tokens a day", "9,000 tokens a day", "20,000 tokens a day", "12,345 tokens a day (9,000 to 20,000)"),
        ("10 min", "450 s", "15 min", "10 min (450 s to 15 min)"),
        ("2 h 0 min", "1 h 5 min", "3 h 0 min", "2 h 0 min (1 h 5 min to 3 h 0 min)"),
        ("50 %", "< 0.1 %", "> 99.9 %", "50 % (< 0.1 % to > 99.9 %)"),
        ("—", "—", "5 s", "— (— to 5 s)"),
    ],
)
def test_a_range_says_its_unit_once_and_never_drops_one_that_differs(value: str, low: str, high: str, told: str) -> None:
    assert with_range(value, low, high) == told


def test_no_range_of_figures_with_units_is_put_together_by_hand() -> None:
    twice = re.compile(r"\{(seconds|ratio|_percent|figure_words|setting_value|_signed|_size|_wait)\([^{}]*\)\} to \{\1\(")
    assert twice.search('f"{seconds(low)} to {seconds(high)}"')
    package = Path(__file__).parents[3] / "horde_policy"
    assert [path.name for path in package.rglob("*.py") if twice.search(path.read_text(encoding="utf-8"))] == []


@given(st.text(alphabet="ab/-", max_size=60), st.integers(8, 40))
def test_a_shortened_name_is_no_longer_and_keeps_its_own_end(name: str, characters: int) -> None:
    found = shortened_name(name, characters)
    own = name.rpartition("/")[2]
    assert len(found) <= characters
    assert found == name if len(name) <= characters else "…" in found
    if len(own) <= characters - 3:
        assert found.endswith(own)
    else:
        assert found.endswith(name[-characters // 2 + 1 :])
