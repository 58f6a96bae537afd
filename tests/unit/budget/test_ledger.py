"""The ledger's rules, on SQLite and on a real PostgreSQL: B4–B6, states, idempotence, prices, the live bound."""

from datetime import UTC, datetime

import pytest

from horde_policy.budget import Certain, Hold, Ledger, Limit, Refusal, TokenUsage
from horde_policy.budget.price_table import PriceTable
from horde_policy.budget.reservation import reserve_cost, resized
from horde_policy.budget.settlement import EndingRules
from horde_policy.budget.usage import read_usage
from horde_policy.clock import FixedClock
from horde_policy.errors import ConfigError, ConflictError, InputError
from tests.unit.budget.accounts import HOLD, REAL, REAL_COST, START, admit, money
from tests.unit.budget.shapes import MICRO, USD, ask, held, price, rates


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


@pytest.mark.parametrize(
    "bad",
    [
        {"input_tokens": 10, "output_tokens": 5, "cache_creation_input_tokens": "100000"},
        {"prompt_tokens": 10, "completion_tokens": 5, "completion_tokens_details": {"reasoning_tokens": 3.0}},
    ],
)
def test_unreadable_usage_keeps_the_hold_and_stays_incomplete_in_the_ledger(ledger: Ledger, bad: dict[str, object]) -> None:
    hold = admit(ledger, "a")
    usage = read_usage({"usage": bad})
    assert ledger.settle(hold, usage).state == "kept"
    found = ledger.find("a")
    assert found.cost_pico == hold.hold_pico
    assert found.usage == usage
    assert not found.usage.complete  # type: ignore[union-attr]


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
    with pytest.raises(ConflictError, match=r"holds \$0\.15288 already: a hold never shrinks"):
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


@pytest.mark.parametrize("name", ["misspelt", "Team", "", "a\x00b"])
def test_a_budget_that_is_not_in_the_ledger_is_an_error_wherever_one_is_named(ledger: Ledger, name: str) -> None:
    admit(ledger, "a")
    for ask_about in (
        lambda: ledger.admit(name, held(), request_id="b"),
        lambda: ledger.open_holds(name),
        lambda: ledger.worst_case(name),
        lambda: ledger.measured_excess(budget=name),
    ):
        with pytest.raises(InputError, match="budget"):
            ask_about()
    ledger.set_budget("idle", Limit("day", "1"))
    assert (ledger.open_holds("idle"), ledger.worst_case("idle").open) == ([], 0)


def test_the_measured_input_comes_from_the_settled_rows(ledger: Ledger) -> None:
    assert ledger.measured_excess() is None
    for number, tokens in enumerate((9_000, 10_000, 10_100, 16_300)):
        admit(ledger, str(number))
        ledger.settle((str(number), 1), TokenUsage(fresh=tokens, output=1))
    assert ledger.measured_excess("0.75") == 300 * MICRO
    assert ledger.measured_excess("1", budget="team") == 18_900 * MICRO
    assert ledger.measured_excess("0.25") == 0
    ledger.set_budget("idle", Limit("day", "1"))
    assert ledger.measured_excess(budget="idle") is None


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
