"""What an alert is called: as the board calls the same thing, with the limit that it goes by."""

from datetime import UTC, datetime

from horde_policy.board.alerts import DEFAULT_RULES, RULE_NAMES, Alert, AlertChange
from horde_policy.history.alerting import alert_sentence
from horde_policy.views.history import HISTORY_NEEDS
from horde_policy.views.past import ALERTS
from horde_policy.views.words import STATES


def test_an_alert_is_called_as_its_state_and_names_its_limit() -> None:
    assert set(ALERTS) == set(RULE_NAMES)
    assert ALERTS["no_worker"] == STATES["no_worker"].label, "too large has no eligible worker either, and fires nothing"
    assert str(DEFAULT_RULES.small_free_tokens) in ALERTS["small_free_request"]


def test_a_message_calls_the_state_and_the_limit_as_the_pages_do() -> None:
    at = datetime(2026, 11, 29, 12, tzinfo=UTC)
    for kind in ("fired", "resolved"):
        told = {
            rule: alert_sentence(AlertChange(kind=kind, alert=Alert(rule=rule, model="m", since=at, fired_at=at), at=at))
            for rule in RULE_NAMES
        }
        assert f"m: {STATES['no_worker'].label} " in told["no_worker"]
        assert f" under {DEFAULT_RULES.small_free_tokens} tokens" in told["small_free_request"]
        assert not [text for text in told.values() if "eligible" in text or "too small" in text]


def test_what_a_history_would_give_is_said_with_its_pages_and_so_holds_on_every_page() -> None:
    assert " here" not in HISTORY_NEEDS
    assert "Overview, Model and Workers" in HISTORY_NEEDS
