"""The ledger's rules, on SQLite and on a real PostgreSQL: B4–B6, states, idempotence, windows, several budgets."""

from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from horde_policy.budget import Certain, Hold, Ledger, Limit, Refusal, TokenUsage
from horde_policy.budget.price_table import PriceTable
from horde_policy.budget.reservation import Reservation, reserve_cost, resized
from horde_policy.budget.settlement import EndingRules
from horde_policy.clock import FixedClock
from horde_policy.errors import ConfigError, ConflictError, InputError
from tests.unit.budget.shapes import MICRO, USD, ask, held, price, rates

START = datetime(2026, 1, 10, 12, tzinfo=UTC)
HOLD = 91_440 * MICRO
REAL = TokenUsage(fresh=10_000, output=500)
REAL_COST = 37_500 * MICRO


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(START)


@pytest.fixture
def ledger(store_url: str, clock: FixedClock) -> Iterator[Ledger]:
    made = Ledger(store_url, owner="copy-1", clock=clock, expiry_s=600)
    made.set_budget("team", Limit("day", "1"))
    yield made
    audit = made.audit()
    assert audit.agrees, "every counter must equal its rows and entries after every test"
    made.close()


def admit(ledger: Ledger, request_id: str = "a", *, attempt: int = 1, reservation: Reservation | None = None) -> Hold:
    answer = ledger.admit("team", reservation or held(), request_id=request_id, attempt=attempt)
    assert isinstance(answer, Hold)
    return answer


def money(ledger: Ledger, budget: str = "team", kind: str = "day") -> tuple[int, int, int]:
    """Spent, held and open of a budget's running window."""
    [state] = [
        window.state
        for status in ledger.status()
        for window in status.windows
        if status.name == budget and window.state.window.kind == kind
    ]
    return state.spent_pico, state.held_pico, state.open_count


def test_an_admission_holds_and_a_settlement_replaces(ledger: Ledger) -> None:
    hold = admit(ledger)
    assert (hold.hold_pico, hold.state, hold.owner, hold.created) == (HOLD, "open", "copy-1", START)
    assert hold.budgets == ("team",)
    assert money(ledger) == (0, HOLD, 1)
    done = ledger.settle(hold, REAL)
    assert (done.state, done.cost_pico, done.hold_pico, done.over_hold_pico, done.again) == (
        "settled",
        REAL_COST,
        HOLD,
        REAL_COST - HOLD,
        False,
    )
    assert money(ledger) == (REAL_COST, 0, 0)


def test_what_is_kept_in_the_ledger_comes_back_as_it_was(ledger: Ledger) -> None:
    reservation = reserve_cost(ask(m=None, n=3, cache="1h"), [price(), price(model="other", row=rates(output="20"))])
    hold = ledger.admit("team", reservation, request_id="a", model="shown")
    assert isinstance(hold, Hold)
    found = ledger.find("a")
    assert found == hold
    assert found.model == "shown"
    ledger.settle(hold, TokenUsage(fresh=1, cache_read=2, write_5m=3, write_1h=4, output=6, reasoning=5), served="m")
    usage = ledger.find("a").usage
    assert usage is not None
    assert (usage.fresh, usage.cache_read, usage.write_5m, usage.write_1h, usage.output, usage.reasoning) == (1, 2, 3, 4, 6, 5)


def test_the_limit_is_a_limit_and_a_refusal_leaves_no_trace(ledger: Ledger) -> None:
    for number in range(10):
        admit(ledger, str(number))
    refused = ledger.admit("team", held(), request_id="b")
    assert isinstance(refused, Refusal)
    assert (refused.obstacle, refused.needed_pico, refused.state.held_pico) == ("held", HOLD, 10 * HOLD)
    assert refused.largest_limit_tokens == 3_706  # ($1 − $0.9144 − $0.03) ÷ $0.000015, down
    assert money(ledger) == (0, 10 * HOLD, 10)
    with pytest.raises(InputError, match="is an attempt that is not in the ledger"):
        ledger.find("b")
    ledger.release(("0", 1))
    assert admit(ledger, "b").request_id == "b"


def test_the_same_admission_again_gives_the_same_hold(ledger: Ledger) -> None:
    first, second = admit(ledger), admit(ledger)
    assert second == first
    assert money(ledger) == (0, HOLD, 1)
    # also when the budget is full by now
    for number in range(9):
        admit(ledger, str(number))
    assert admit(ledger) == first


def test_another_money_or_an_ended_attempt_is_a_conflict(ledger: Ledger) -> None:
    hold = admit(ledger)
    with pytest.raises(ConflictError, match="is open with other money: a retry is another attempt"):
        admit(ledger, reservation=held(m=5))
    ledger.set_budget("other", Limit("day", "1"))
    with pytest.raises(ConflictError, match="is open in other budgets"):
        ledger.admit("other", held(), request_id="a")
    ledger.settle(hold, REAL)
    with pytest.raises(ConflictError, match="has ended as settled: a retry is another attempt"):
        admit(ledger)
    assert admit(ledger, attempt=2).attempt == 2
    assert money(ledger) == (REAL_COST, HOLD, 1)


def test_a_second_settlement_never_charges_twice(ledger: Ledger) -> None:
    hold = admit(ledger)
    first = ledger.settle(hold, REAL)
    again = ledger.settle(("a", 1), REAL)
    assert (again.again, again.cost_pico, again.state) == (True, first.cost_pico, "settled")
    for usage in (TokenUsage(fresh=10_000, output=501), None, TokenUsage(fresh=10_005, output=499)):
        with pytest.raises(ConflictError, match="the first is kept"):
            ledger.settle(hold, usage)
    assert money(ledger) == (REAL_COST, 0, 0)
    assert ledger.audit().disputes == 3


def test_what_was_kept_or_released_stays_so(ledger: Ledger) -> None:
    kept, released = admit(ledger, "kept"), admit(ledger, "released")
    assert ledger.settle(kept, None).state == "kept"
    assert ledger.settle(kept, None).again
    assert ledger.release(released).cost_pico == 0
    assert ledger.release(released).again
    for hold in (kept, released):
        with pytest.raises(ConflictError):
            ledger.settle(hold, REAL)
    assert money(ledger) == (HOLD, 0, 0)
    labels = ledger.status()[0].windows[0].labels
    assert (labels["estimated"].pico, labels["estimated"].requests, labels["released"].requests) == (HOLD, 1, 1)


def test_an_unknown_id_makes_no_money(ledger: Ledger) -> None:
    with pytest.raises(InputError, match="is an attempt that is not in the ledger"):
        ledger.settle(("ghost", 1), REAL)
    with pytest.raises(InputError, match="is not in the ledger"):
        ledger.admit("ghost", held(), request_id="a")
    assert money(ledger) == (0, 0, 0)


@pytest.mark.parametrize("bad", ["", "x" * 201, "a\nb", "a\0b", "\ud800", 5, None])
def test_ids_from_outside_are_checked(ledger: Ledger, bad: str) -> None:
    for call in (
        lambda: ledger.admit("team", held(), request_id=bad),
        lambda: ledger.admit(bad, held(), request_id="a"),
        lambda: ledger.admit("team", held(), request_id="a", model=bad if bad is not None else "\n"),
        lambda: ledger.find(bad),
        lambda: ledger.set_budget(bad, Limit("day", "1")),
        lambda: ledger.settle((bad, 1), None),
    ):
        with pytest.raises((InputError, TypeError)):
            call()
    assert money(ledger) == (0, 0, 0)


@pytest.mark.parametrize("name", ["'; DROP TABLE holds; --", "%s %(x)s :p_name ?", "<script>", "ä€😀", " "])
def test_hostile_names_are_kept_as_they_are(ledger: Ledger, name: str) -> None:
    ledger.set_budget(name, Limit("day", "1"))
    hold = ledger.admit(name, held(), request_id=name, model=name)
    assert isinstance(hold, Hold)
    ledger.settle(hold, REAL)
    found = ledger.find(name)
    assert (found.request_id, found.model, found.budgets) == (name, name, (name,))


@pytest.mark.parametrize("attempt", [0, -1, True, 1.0, 10**7])
def test_an_attempt_is_a_number_from_one(ledger: Ledger, attempt: int) -> None:
    with pytest.raises(InputError, match="attempt"):
        ledger.admit("team", held(), request_id="a", attempt=attempt)


def test_orphans_expire_at_their_hold_and_late_usage_replaces_it(ledger: Ledger, clock: FixedClock) -> None:
    hold = admit(ledger)
    clock.advance(599)
    assert ledger.reap() == []
    clock.advance(1)
    [expired] = ledger.reap()
    assert (expired.request_id, expired.owner, expired.state, expired.cost_pico) == ("a", "copy-1", "expired", HOLD)
    assert money(ledger) == (HOLD, 0, 0)
    assert [h.state for h in ledger.open_holds()] == ["expired"]  # its real cost is not written yet
    assert ledger.settle(hold, None).again  # its owner is back and knows no more
    late = ledger.settle(hold, REAL)
    assert (late.state, late.cost_pico) == ("late", REAL_COST)
    assert money(ledger) == (REAL_COST, 0, 0)
    assert ledger.settle(hold, REAL).again
    with pytest.raises(ConflictError):
        ledger.settle(hold, TokenUsage(fresh=1, output=1))
    assert ledger.open_holds() == []


def test_late_usage_may_cost_more_than_was_counted(ledger: Ledger, clock: FixedClock) -> None:
    hold = admit(ledger)
    clock.advance(600)
    ledger.reap()
    assert ledger.settle(hold, TokenUsage(fresh=10_000, output=32_000)).cost_pico == 510_000 * MICRO
    assert money(ledger) == (510_000 * MICRO, 0, 0)


def test_an_expired_hold_is_released_by_hand_and_its_cost_is_still_not_lost(ledger: Ledger, clock: FixedClock) -> None:
    hold = admit(ledger)
    with pytest.raises(ConflictError, match="only an expired hold can"):
        ledger.release_by_hand("a")
    clock.advance(600)
    ledger.reap()
    assert ledger.release_by_hand("a").state == "released"
    assert money(ledger) == (0, 0, 0)
    with pytest.raises(ConflictError):
        ledger.release_by_hand("a")
    late = ledger.settle(hold, REAL)
    assert (late.state, late.cost_pico, late.flags) == ("late", REAL_COST, ("by_hand",))
    assert money(ledger) == (REAL_COST, 0, 0)


def test_an_expired_hold_of_a_request_that_was_never_sent_is_given_back(ledger: Ledger, clock: FixedClock) -> None:
    hold = admit(ledger)
    clock.advance(600)
    ledger.reap()
    assert ledger.release(hold).state == "released"
    assert money(ledger) == (0, 0, 0)


def test_an_owner_that_renews_keeps_its_holds_and_only_its_own(ledger: Ledger, store_url: str, clock: FixedClock) -> None:
    other = Ledger(store_url, owner="copy-2", clock=clock, expiry_s=600)
    admit(ledger, "mine")
    assert other.admit("team", held(), request_id="theirs")
    clock.advance(500)
    ledger.renew()
    clock.advance(200)
    assert [hold.request_id for hold in other.reap()] == ["theirs"]
    clock.advance(400)
    assert [hold.request_id for hold in other.reap()] == ["mine"]
    other.close()


def test_renewal_in_the_background(store_url: str) -> None:
    with Ledger(store_url, owner="copy", expiry_s=0.6) as ledger:
        ledger.set_budget("team", Limit("day", "1"))
        first = admit(ledger)
        with ledger.renewing(every_s=0.05):
            deadline = datetime.now(UTC)
            while ledger.find("a").expires <= first.expires:
                assert (datetime.now(UTC) - deadline).total_seconds() < 60
        for wrong in (0.0, -1.0, float("nan"), float("inf")):
            with pytest.raises(ConfigError, match="every_s"), ledger.renewing(every_s=wrong):
                pass


def test_a_free_target_passes_a_spent_budget_and_an_unpriced_one_is_kept_apart(ledger: Ledger) -> None:
    big = admit(ledger, "big", reservation=held(m=4_096))
    ledger.settle(big, TokenUsage(fresh=1_000_000, output=0))
    assert isinstance(ledger.admit("team", held(), request_id="x"), Refusal)
    free = price(model="free", row=rates("0", "0", "0", "0", "0"))
    hold = ledger.admit("team", held(at=free), request_id="free")
    assert isinstance(hold, Hold)
    assert hold.hold_pico == 0
    assert ledger.settle(hold, REAL).flags == ("free_target",)
    assert money(ledger) == (3 * USD, 0, 0)


def test_a_limit_of_zero_and_zero_holds(ledger: Ledger) -> None:
    ledger.set_budget("team", Limit("day", "0"))
    assert isinstance(ledger.admit("team", held(), request_id="a"), Refusal)
    assert isinstance(ledger.admit("team", held(body=0, reserve=0), request_id="b"), Refusal)
    free = held(at=price(row=rates("0", "0", "0", "0", "0")))
    assert isinstance(ledger.admit("team", free, request_id="c"), Hold)


def test_settlements_are_charged_at_the_table_in_force(store_url: str, clock: FixedClock) -> None:
    old, new = price(), price(row=rates(output="30"))
    with Ledger(store_url, clock=clock, prices=PriceTable("t", "s", (old,))) as ledger:
        ledger.set_budget("team", Limit("day", "1"))
        admit(ledger, "same")
        admit(ledger, "raised")
        admit(ledger, "gone")
        admit(ledger, "fallback", reservation=held(at=price()))
        assert ledger.settle(("same", 1), REAL).flags == ()
        ledger.prices = PriceTable("t", "s", (new, price(model="dear", row=rates(input="30"))))
        raised = ledger.settle(("raised", 1), REAL)
        assert (raised.cost_pico, raised.flags) == (45_000 * MICRO, ("repriced",))
        dear = ledger.settle(("fallback", 1), REAL, served="dear")
        assert dear.cost_pico == (300_000 + 7_500) * MICRO
        ledger.prices = PriceTable("t", "s", (price(model="another"),))
        gone = ledger.settle(("gone", 1), REAL)
        assert (gone.state, gone.cost_pico, gone.flags) == ("kept", HOLD, ("unpriced",))
        labels = ledger.status()[0].windows[0].labels
        assert (labels["unpriced"].requests, labels["unpriced"].pico, labels["estimated"].pico) == (1, HOLD, 0)
        assert ledger.audit().agrees


def test_without_a_table_only_targets_of_the_route_have_a_price(ledger: Ledger) -> None:
    route = reserve_cost(ask(m=4_096), [price(), price(model="other", row=rates(output="1"))])
    admit(ledger, "a", reservation=route)
    admit(ledger, "b", reservation=route)
    assert ledger.settle(("a", 1), REAL, served="other").cost_pico == 30_500 * MICRO
    assert ledger.settle(("b", 1), REAL, served="third").flags == ("unpriced",)


def test_how_it_ended_decides_without_usage(store_url: str) -> None:
    with Ledger(store_url, rules=EndingRules(release_server_error=True)) as ledger:
        ledger.set_budget("team", Limit("day", "1"))
        for number, (ended, state) in enumerate(
            [("refused", "released"), ("server_error", "released"), ("timed_out", "kept"), ("cut_by_client", "kept")]
        ):
            admit(ledger, str(number))
            assert ledger.settle((str(number), 1), None, ended=ended).state == state  # type: ignore[arg-type]


def test_every_window_of_a_budget_must_pass_and_the_binding_one_is_named(ledger: Ledger, clock: FixedClock) -> None:
    ledger.set_budget("team", Limit("day", "0.2", "Europe/Berlin"), Limit("month", "0.5"), Limit("total", "0.45"))
    for day in range(2):
        for number in range(2):
            hold = admit(ledger, f"{day}-{number}")
            ledger.settle(hold, TokenUsage(fresh=33_333, output=0))
        refused = ledger.admit("team", held(), request_id=f"{day}-x")
        assert isinstance(refused, Refusal)
        assert (refused.state.window.kind, refused.obstacle) == (("day", "spent") if day == 0 else ("total", "spent"))
        if day == 0:
            assert refused.retry_at == datetime(2026, 1, 10, 23, tzinfo=UTC)  # midnight in Berlin
        clock.advance(86_400)
    spent = {status.state.window.kind: status.state.spent_pico for status in ledger.status()[0].windows}
    assert spent == {"day": 0, "month": 4 * 99_999 * MICRO, "total": 4 * 99_999 * MICRO}


def test_several_budgets_all_admit_or_none_holds(ledger: Ledger) -> None:
    ledger.set_budget("person", Limit("day", "0.1"))
    first = ledger.admit(["team", "person", "team"], held(), request_id="a")
    assert isinstance(first, Hold)
    assert first.budgets == ("person", "team") or first.budgets == ("team", "person")
    refused = ledger.admit(["team", "person"], held(), request_id="b")
    assert isinstance(refused, Refusal)
    assert refused.state.budget == "person"
    assert money(ledger) == (0, HOLD, 1)
    assert money(ledger, "person") == (0, HOLD, 1)
    ledger.settle(first, REAL)
    assert money(ledger) == money(ledger, "person") == (REAL_COST, 0, 0)
    with pytest.raises(InputError, match="is not in the ledger"):
        ledger.admit(["team", "ghost"], held(), request_id="c")
    with pytest.raises(InputError, match="at least one name"):
        ledger.admit([], held(), request_id="c")
    assert money(ledger) == (REAL_COST, 0, 0)


def test_a_cap_on_open_requests(ledger: Ledger) -> None:
    ledger.set_budget("team", Limit("day", "1", open_cap=2))
    first = admit(ledger, "a")
    admit(ledger, "b")
    refused = ledger.admit("team", held(), request_id="c")
    assert isinstance(refused, Refusal)
    assert (refused.obstacle, refused.state.open_count) == ("open_cap", 2)
    ledger.settle(first, REAL)
    assert admit(ledger, "c")
    for wrong in (0, -1, True, 1.5):
        with pytest.raises(ConfigError, match="open_cap"):
            Limit("day", "1", open_cap=wrong)  # type: ignore[arg-type]


def test_a_lowered_limit_refuses_new_work_and_keeps_what_is_spent(ledger: Ledger) -> None:
    hold = admit(ledger)
    ledger.set_budget("team", Limit("day", "0.01"))
    refused = ledger.admit("team", held(), request_id="b")
    assert isinstance(refused, Refusal)
    assert refused.state.left_pico < 0
    ledger.settle(hold, REAL)
    ledger.set_budget("team", Limit("day", "2"))
    assert money(ledger) == (REAL_COST, 0, 0)
    assert admit(ledger, "b")


def test_a_window_turned_on_later_starts_from_its_own_history(ledger: Ledger, clock: FixedClock) -> None:
    yesterday = admit(ledger, "yesterday")
    ledger.settle(yesterday, REAL)
    clock.advance(86_400)
    ledger.settle(admit(ledger, "today"), TokenUsage(fresh=1_000, output=0))
    admit(ledger, "open")
    ledger.set_budget("team", Limit("day", "1"), Limit("month", "0.14"))
    assert money(ledger, kind="month") == (REAL_COST + 3_000 * MICRO, HOLD, 1)
    assert money(ledger) == (3_000 * MICRO, HOLD, 1)
    refused = ledger.admit("team", held(), request_id="x")
    assert isinstance(refused, Refusal)
    assert refused.state.window.kind == "month"
    ledger.settle(("open", 1), REAL)
    assert money(ledger, kind="month") == (2 * REAL_COST + 3_000 * MICRO, 0, 0)


def test_a_limit_that_was_off_counts_what_it_missed_when_it_is_on_again(ledger: Ledger) -> None:
    ledger.settle(admit(ledger, "a"), REAL)
    ledger.set_budget("team", Limit("week", "1"))
    ledger.settle(admit(ledger, "b"), REAL)
    admit(ledger, "c")
    ledger.set_budget("team", Limit("day", "1"), Limit("week", "1"))
    assert money(ledger) == (2 * REAL_COST, HOLD, 1)
    assert money(ledger, kind="week") == (2 * REAL_COST, HOLD, 1)


def test_a_clock_that_steps_back_stays_in_the_later_window(ledger: Ledger, clock: FixedClock) -> None:
    clock.advance(86_400)
    admit(ledger, "a")
    clock.advance(-86_400)
    hold = admit(ledger, "b")
    assert hold.windows[0].start == datetime(2026, 1, 11, tzinfo=UTC)
    assert money(ledger) == (0, 2 * HOLD, 2)


def test_a_hold_stays_in_its_window_and_the_next_starts_at_nothing(ledger: Ledger, clock: FixedClock) -> None:
    hold = admit(ledger)
    clock.advance(86_400)
    assert money(ledger) == (0, 0, 0)
    admit(ledger, "b")
    ledger.settle(hold, REAL)
    assert money(ledger) == (0, HOLD, 1)
    old, _new = ledger.audit().windows
    assert (old.spent_pico, old.held_pico) == (REAL_COST, 0)


def test_a_hold_grows_only_if_the_budget_has_the_money(ledger: Ledger) -> None:
    hold = admit(ledger)
    bigger = ledger.raise_hold(hold, resized(hold.reservation, 8_192))
    assert isinstance(bigger, Hold)
    assert bigger.hold_pico == (30_000 + 8_192 * 15) * MICRO
    assert money(ledger) == (0, bigger.hold_pico, 1)
    refused = ledger.raise_hold(bigger, resized(hold.reservation, 70_000))
    assert isinstance(refused, Refusal)
    assert refused.obstacle == "too_large"
    assert money(ledger) == (0, bigger.hold_pico, 1)
    with pytest.raises(ConflictError, match="a hold never shrinks"):
        ledger.raise_hold(bigger, hold.reservation)
    kept = ledger.settle(hold, None)  # the caller's own copy is the old one
    assert kept.cost_pico == bigger.hold_pico
    with pytest.raises(ConflictError, match="it is not open"):
        ledger.raise_hold(bigger, resized(hold.reservation, 9_000))


def test_a_fallback_reserves_the_difference_before_the_switch(ledger: Ledger) -> None:
    cheap, dear = price(model="cheap", row=rates(output="0.60")), price(model="dear")
    hold = admit(ledger, reservation=reserve_cost(ask(m=4_096), cheap))
    raised = ledger.raise_hold(hold, reserve_cost(ask(m=4_096), [cheap, dear]))
    assert isinstance(raised, Hold)
    assert raised.hold_pico - hold.hold_pico == 4_096 * 14_400_000
    assert ledger.settle(raised, TokenUsage(fresh=10_000, output=4_096), served="dear").cost_pico == HOLD


def test_the_bound_is_live(ledger: Ledger) -> None:
    admit(ledger, "a", reservation=held(m=8_000))
    admit(ledger, "b", reservation=held(m=None))
    worst = ledger.worst_case("team", inputs=Certain())
    assert (worst.open, worst.unbounded) == (2, 1)
    assert worst.stated_pico == (3_904 * 15 + 570_000) * MICRO
    [status] = ledger.status()[0].windows
    assert status.worst == worst
    assert status.oldest is not None
    assert status.oldest.request_id == "a"
    assert ledger.worst_case().open == 2
    ledger.settle(("a", 1), REAL)
    ledger.settle(("b", 1), None)
    assert ledger.worst_case("team").open == 0


def test_the_measured_input_comes_from_the_settled_rows(ledger: Ledger) -> None:
    assert ledger.measured_excess() is None
    for number, tokens in enumerate((9_000, 10_000, 10_100, 16_300)):
        admit(ledger, str(number))
        ledger.settle((str(number), 1), TokenUsage(fresh=tokens, output=1))
    assert ledger.measured_excess("0.75") == 300 * MICRO
    assert ledger.measured_excess("1", budget="team") == 18_900 * MICRO
    assert ledger.measured_excess("0.25") == 0
    assert ledger.measured_excess(budget="none") is None


def test_an_audit_sees_what_a_hand_did_and_rebuild_repairs_it(store_url: str) -> None:
    import sqlalchemy as sa

    with Ledger(store_url) as ledger:
        ledger.set_budget("team", Limit("day", "1"))
        ledger.settle(admit(ledger, "a"), REAL)
        admit(ledger, "b")
        assert ledger.rebuild() == 0
        engine = sa.create_engine(store_url.replace("postgresql://", "postgresql+psycopg://"))
        with engine.begin() as connection:
            connection.execute(sa.text("UPDATE windows SET spent_pico = 1, held_pico = 2, open_count = 7"))
        engine.dispose()
        assert not ledger.audit().agrees
        assert ledger.rebuild() == 1
        assert ledger.audit().agrees
        assert money(ledger) == (REAL_COST, HOLD, 1)


def test_budgets_need_limits_that_make_sense(ledger: Ledger) -> None:
    with pytest.raises(InputError, match="must be at least one"):
        ledger.set_budget("x")
    with pytest.raises(InputError, match="one of a kind and zone"):
        ledger.set_budget("x", Limit("day", "1"), Limit("day", "2"))
    for wrong in (1.5, "-1", "NaN", "5000000", None):
        with pytest.raises(InputError, match="limit"):
            Limit("day", wrong)
    with pytest.raises(ConfigError, match="expiry_s"):
        Ledger("x.db", expiry_s=0)


@st.composite
def scripts(draw: st.DrawFn) -> list[tuple[str, int, int]]:
    step = st.tuples(
        st.sampled_from(["admit", "admit", "settle", "keep", "release", "reap", "hand", "raise", "day", "window"]),
        st.integers(0, 7),
        st.integers(0, 40_000),
    )
    return draw(st.lists(step, min_size=5, max_size=30))


def perform(ledger: Ledger, clock: FixedClock, budget: str, what: str, number: int, size: int) -> None:
    key = (f"{budget}-{number}", 1)
    usage = TokenUsage(fresh=size, output=size)
    if what == "admit":
        there = {hold.key for hold in ledger.open_holds(budget)}
        answer = ledger.admit(budget, held(m=size + 1, body=size), request_id=key[0])
        if isinstance(answer, Hold) and key not in there:
            spent, held_now, _ = money(ledger, budget)
            assert spent + held_now <= USD // 2
    elif what == "settle":
        ledger.settle(key, usage)
    elif what == "keep":
        ledger.settle(key, None)
    elif what == "release":
        ledger.release(key)
    elif what == "reap":
        clock.advance(700)
        ledger.reap()
    elif what == "hand":
        ledger.release_by_hand(*key)
    elif what == "raise":
        found = ledger.find(*key)
        ledger.raise_hold(found, resized(found.reservation, size))
    elif what == "day":
        clock.advance(86_400)
    else:
        ledger.set_budget(budget, Limit("day", "0.5"), Limit("week" if number % 2 else "month", "1"))


def run_script(url: str, script: list[tuple[str, int, int]]) -> None:
    clock = FixedClock(START)
    with Ledger(url, clock=clock, expiry_s=600, owner="copy") as ledger:
        budget = f"team-{len(ledger.status())}"
        ledger.set_budget(budget, Limit("day", "0.5"))
        for what, number, size in script:
            with suppress(ConflictError, InputError):
                perform(ledger, clock, budget, what, number, size)
            assert ledger.audit().agrees


FIXTURE = HealthCheck.function_scoped_fixture


@settings(max_examples=6, suppress_health_check=[FIXTURE, HealthCheck.too_slow], deadline=None)
@given(scripts())
def test_any_sequence_keeps_counters_rows_and_entries_equal(store_url: str, script: list[tuple[str, int, int]]) -> None:
    run_script(store_url, script)


@pytest.mark.soak
@settings(max_examples=200, suppress_health_check=[FIXTURE, HealthCheck.too_slow], deadline=None)
@given(scripts())
def test_the_same_for_many_sequences(store_url: str, script: list[tuple[str, int, int]]) -> None:
    run_script(store_url, script)
