"""What stands in place of figures that were never there names the source, the trouble in plain words, and the next try."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from horde_policy.sources.poller import Look
from horde_policy.views.no_data import no_data_sentences, no_data_title, plain_trouble

AT = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
FAILING = Look(
    snapshot=None,
    serial=0,
    state="failing",
    error="aihorde.net: cannot be reached (ConnectError)",
    failing_since=AT - timedelta(seconds=90),
    throttled_until=None,
    next_due=AT + timedelta(seconds=40),
    polls=3,
)


def read(text: str) -> str:
    return text.replace("\\", "").replace("\N{WORD JOINER}", "").replace("\N{NO-BREAK SPACE}", " ")


def test_it_says_what_was_asked_what_went_wrong_and_when_it_is_asked_again() -> None:
    said = read(no_data_sentences(FAILING, AT, refresh_s=30))
    assert "It was asked 3 times since 11:58:30 UTC; no connection came about: there is no network here" in said
    assert "aihorde.net: cannot be reached (ConnectError)." in said
    assert said.endswith("It is asked again not before 12:00:40 UTC, in 40 s: this page looks by itself.")


def test_with_refresh_off_the_viewer_is_told_what_to_press() -> None:
    said = read(no_data_sentences(replace(FAILING, polls=1, next_due=AT), AT, refresh_s=0))
    assert "It was asked once" in said
    assert said.endswith("It is asked again at the next look: Refresh is off, so press Look again.")


@pytest.mark.parametrize(
    ("error", "plain"),
    [
        ("h: answers 429 to /v2/workers, asks to wait 30 s", "asked too often"),
        ("h: answers 503 to /v2/workers, 2 times", "a fault of its own"),
        ("h: answers 404 to /v2/workers", "another program's"),
        ("h: takes longer than 20 s for one answer", "in time"),
        ("h: cannot be reached (ReadError)", "broke"),
        ("h: is no JSON", "cannot be used"),
    ],
)
def test_every_kind_of_trouble_has_plain_words(error: str, plain: str) -> None:
    assert plain in plain_trouble(error)


def test_a_hostile_name_stays_text() -> None:
    assert "![x](" not in no_data_title("![x](http://192.0.2.1/)", "aihorde.net")
    assert read(no_data_title("aihorde.net", "aihorde.net")) == "No figures from aihorde.net yet"
    assert "![x](" not in no_data_sentences(replace(FAILING, error="![x](http://192.0.2.1/)"), AT, refresh_s=30)
