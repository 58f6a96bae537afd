"""The decision against a table written from the rules, and against the arrival of the replay page (A13–A21)."""

import itertools
import re
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horde_policy.errors import InputError
from horde_policy.policy.decision import ContextAdjustment, Pool, Request, Waiting, decide, lowered_for_chat, queue_key
from horde_policy.policy.eligibility import Worker
from horde_policy.policy.queue_order import QueueKey
from horde_policy.settings import AllowanceSettings
from tests.unit.policy import strategies as some
from tests.unit.policy.arrival import arrive

SETTINGS = AllowanceSettings()
MODEL = "L3-8B"
FAST = Worker(
    worker_id="w",
    models=(MODEL,),
    max_length=8192,
    max_context_length=16384,
    speed_tok_per_s=10.0,
    measured=True,
)
SHORT_OF_CONTEXT = replace(FAST, max_context_length=1024)
ALLOWANCE_AT_180_S = 2304


@dataclass(frozen=True)
class Rule:
    """One row of the decision table; ``*`` stands for either."""

    cites: str
    slow_workers: str
    size: str
    can_pay: str
    allow_downgrade: str
    chat: str
    eligible: str
    outcome: str
    reason: str | None
    says: str


SLOW_OVER = "excludes slow workers always .* asks for {s} .* where {a} are free"
TABLE = [
    # cites, slow workers allowed, size, can pay, allow_downgrade, chat, eligible → outcome, reason, what the message says
    Rule("A13", "yes", "below|at", "*", "*", "*", "yes", "free", None, "Up to {a} output tokens are free .* asks for {s}."),
    Rule("A13 A5", "yes", "below|at", "*", "*", "*", "no", "free", None, "Up to {a} .* asks for {s}, and it waits until"),
    Rule("A14", "yes", "above", "yes", "*", "*", "yes", "funded", None, "Up to {a} .* asks for {s}, so its kudos are held."),
    Rule("A14", "yes", "above", "yes", "*", "*", "no", "funded", None, "so its kudos are held, and it waits until"),
    Rule("A16", "yes", "above", "no", "yes", "no", "yes", "downgraded", None, "Up to {a} .* for {s} is lowered to {a}."),
    Rule("A16 A19", "yes", "above", "no", "yes", "no", "no", "downgraded", None, "lowered to {a}, and it waits until"),
    Rule("A15", "yes", "above", "no", "no", "*", "yes", "refused", "KudosUpfront", "Up to {a} .* asks for {s}, which needs"),
    Rule("A17 A15", "yes", "above", "no", "yes", "yes", "yes", "refused", "KudosUpfront", "Up to {a} .* which needs kudos"),
    Rule("A19", "yes", "above", "no", "no", "*", "no", "refused", "NoEligibleWorker", "No online .* kudos do not help.* {a} "),
    Rule("A17 A19", "yes", "above", "no", "yes", "yes", "no", "refused", "NoEligibleWorker", "1024 fewer than the 2048.* {a} "),
    Rule("A20 A14", "no", "*", "yes", "*", "*", "yes", "funded", None, "excludes slow workers always needs .* held."),
    Rule("A20 A14", "no", "*", "yes", "*", "*", "no", "funded", None, "excludes slow workers .* held, and it waits until"),
    Rule("A16", "no", "below|at", "no", "yes", "no", "*", "downgraded", None, "Slow workers are allowed for this .* for {s}"),
    Rule("A16", "no", "above", "no", "yes", "no", "*", "downgraded", None, "lowered to {a} and slow workers are allowed"),
    Rule("A20", "no", "below|at", "no", "no", "*", "*", "refused", "KudosUpfront", "excludes slow workers always needs"),
    Rule("A20 A17", "no", "below|at", "no", "yes", "yes", "*", "refused", "KudosUpfront", "excludes slow workers always needs"),
    Rule("A20 A15", "no", "above", "no", "no", "*", "yes", "refused", "KudosUpfront", SLOW_OVER),
    Rule("A20 A17", "no", "above", "no", "yes", "yes", "yes", "refused", "KudosUpfront", SLOW_OVER),
    Rule("A19", "no", "above", "no", "no", "*", "no", "refused", "NoEligibleWorker", "kudos do not help.* {a} "),
    Rule("A17 A19", "no", "above", "no", "yes", "yes", "no", "refused", "NoEligibleWorker", "kudos do not help.* {a} "),
]

WORDS = {True: "yes", False: "no"}
COMBINATIONS = list(
    itertools.product(
        ("anonymous", "registered", "shared_key"), *[(True, False)] * 1, ("below", "at", "above"), *[(True, False)] * 5
    )
)


def rows_for(*, slow: bool, size: str, pay: bool, downgrade: bool, chat: bool, eligible: bool) -> list[Rule]:
    asked = {
        "slow_workers": WORDS[slow],
        "size": size,
        "can_pay": WORDS[pay],
        "allow_downgrade": WORDS[downgrade],
        "chat": WORDS[chat],
        "eligible": WORDS[eligible],
    }
    return [
        rule
        for rule in TABLE
        if all(getattr(rule, name) == "*" or value in getattr(rule, name).split("|") for name, value in asked.items())
    ]


@pytest.mark.parametrize(("requester", "pay", "size", "eligible", "chat", "downgrade", "slow", "dry_run"), COMBINATIONS)
def test_every_combination_gets_what_its_one_row_of_the_table_says(
    requester: str, size: str, *, pay: bool, eligible: bool, chat: bool, downgrade: bool, slow: bool, dry_run: bool
) -> None:
    (rule,) = rows_for(slow=slow, size=size, pay=pay, downgrade=downgrade, chat=chat, eligible=eligible)
    allowance = ALLOWANCE_AT_180_S if eligible else SETTINGS.floor_tokens
    asked = allowance + {"below": -1, "at": 0, "above": 1}[size]
    request = Request(
        models=(MODEL,),
        max_length=asked,
        max_context_length=max(2048, asked) if eligible else 2048,
        requester=requester,  # type: ignore[arg-type]
        can_pay=pay,
        chat=chat,
        allow_downgrade=downgrade,
        slow_workers=slow,
        dry_run=dry_run,
    )
    pool = Pool(workers=(FAST if eligible else SHORT_OF_CONTEXT,), queued_tokens=1800)
    decision = decide(request, pool, SETTINGS)
    assert (decision.outcome, decision.reason) == (rule.outcome, rule.reason), rule.cites
    assert decision.allowance_tokens == allowance
    assert decision.estimated_wait_s == (180.0 if eligible else None)
    assert re.search(rule.says.format(a=allowance, s=asked), decision.message), decision.message
    assert re.fullmatch(r"[A-Z][^.]*\.", decision.message), "one sentence"
    admitted = {"free": asked, "funded": asked, "refused": None, "downgraded": min(asked, allowance)}[rule.outcome]
    assert decision.admitted_max_length == admitted
    assert decision.slow_workers is (slow or rule.outcome == "downgraded")
    assert decision.context_adjustments == ()
    assert (decision.gap is None) is eligible


def test_the_table_has_one_row_for_every_combination_and_none_is_idle() -> None:
    used = [
        rows_for(slow=slow, size=size, pay=pay, downgrade=downgrade, chat=chat, eligible=eligible)
        for slow, pay, downgrade, chat, eligible in itertools.product((True, False), repeat=5)
        for size in ("below", "at", "above")
    ]
    assert len(COMBINATIONS) == 3 * 2 * 3 * 2**5
    assert {len(rows) for rows in used} == {1}
    assert {rows[0].cites + rows[0].says for rows in used} == {rule.cites + rule.says for rule in TABLE}


def test_a_refusal_for_slow_workers_does_not_state_an_allowance_that_the_request_is_under() -> None:
    decision = decide(Request(models=(MODEL,), slow_workers=False), Pool(workers=(FAST,), queued_tokens=0), SETTINGS)
    assert decision.reason == "KudosUpfront"
    assert not re.search(r"\d", decision.message)
    assert "slow workers" in decision.message


def test_a_dry_run_is_decided_as_the_request_itself() -> None:
    for length in (80, 4096):
        request = Request(models=(MODEL,), max_length=length, max_context_length=4096)
        pool = Pool(workers=(FAST,), queued_tokens=2000)
        quote = decide(replace(request, dry_run=True), pool, SETTINGS)
        assert replace(quote, request=request) == decide(request, pool, SETTINGS)


class TestChat:
    def test_it_is_lowered_to_the_largest_length_that_an_online_worker_of_its_models_declares(self) -> None:
        other = replace(FAST, worker_id="o", models=("other",), max_length=16384)
        away = replace(FAST, worker_id="a", max_length=9000, maintenance=True)
        slow_and_narrow = replace(FAST, worker_id="s", max_length=2000, max_context_length=1, speed_tok_per_s=0.1)
        workers = (replace(FAST, max_length=1000), other, away, slow_and_narrow)
        request = Request(models=(MODEL,), max_length=4096, chat=True)
        decision = decide(request, Pool(workers=workers, queued_tokens=0), SETTINGS)
        assert decision.context_adjustments == (ContextAdjustment("max_tokens", 4096, 2000),)
        assert (decision.measured_max_length, decision.request.max_length) == (2000, 4096)
        assert (decision.outcome, decision.eligible_workers) == ("refused", 0)
        assert decision.gap is None
        assert "No online worker can take this request for 2000 output tokens;" in decision.message

    def test_the_wait_and_the_allowance_are_measured_at_the_lowered_size(self) -> None:
        request = Request(models=(MODEL,), max_length=16384, max_context_length=16384, chat=True)
        decision = decide(request, Pool(workers=(FAST,), queued_tokens=0), SETTINGS)
        assert (decision.measured_max_length, decision.eligible_workers, decision.allowance_tokens) == (8192, 1, 4096)

    def test_a_request_for_any_model_looks_at_every_online_worker(self) -> None:
        lowered = lowered_for_chat(Request(models=(), max_length=16384, chat=True), (FAST, replace(FAST, max_length=9000)))
        assert lowered.max_length == 9000

    @pytest.mark.parametrize("length", [None, 0])
    def test_without_a_declared_length_it_stays(self, length: int | None) -> None:
        request = Request(models=(MODEL,), chat=True)
        assert lowered_for_chat(request, (replace(FAST, max_length=length),)) == request
        assert lowered_for_chat(request, ()) == request

    def test_nothing_else_is_ever_lowered_that_way(self) -> None:
        request = Request(models=(MODEL,), max_length=16384)
        assert lowered_for_chat(request, (FAST,)) == request

    @given(request=some.requests(), fleet=some.fleets(), settings=some.settings(), queued=st.integers(0, 10**6))
    def test_it_is_never_downgraded_nor_changed_but_by_that_lowering(
        self, request: Request, fleet: tuple[Worker, ...], settings: AllowanceSettings, queued: int
    ) -> None:
        decision = decide(replace(request, chat=True), Pool(workers=fleet, queued_tokens=queued), settings)
        assert decision.outcome != "downgraded"
        assert decision.admitted_max_length in (None, decision.measured_max_length)
        declared = [w.max_length for w in fleet if w.max_length == decision.measured_max_length]
        assert decision.measured_max_length == request.max_length or declared


class TestDeclarationGap:
    def test_a_size_that_nobody_declares_is_refused_with_the_gap(self) -> None:
        request = Request(models=(MODEL,), max_length=10_000, max_context_length=20_000)
        decision = decide(request, Pool(workers=(FAST,), queued_tokens=0), SETTINGS)
        assert decision.reason == "NoEligibleWorker"
        assert decision.gap is not None
        assert (decision.gap.length_tokens, decision.gap.context_tokens) == (1808, 3616)
        assert "the largest output offered is 8192 tokens, 1808 fewer than the 10000 asked" in decision.message
        assert "the largest context offered is 16384 tokens, 3616 fewer than the 20000 asked" in decision.message
        assert "only up to 512 output tokens are free" in decision.message

    def test_there_is_none_where_no_online_worker_serves_the_model(self) -> None:
        workers = (replace(FAST, models=("other",)), replace(FAST, online=False))
        decision = decide(Request(models=(MODEL,), max_length=600), Pool(workers=workers, queued_tokens=0), SETTINGS)
        assert (decision.reason, decision.gap) == ("NoEligibleWorker", None)

    def test_with_allow_downgrade_the_lowering_comes_first(self) -> None:
        request = Request(models=(MODEL,), max_length=10_000, max_context_length=10_000, allow_downgrade=True)
        decision = decide(request, Pool(workers=(FAST,), queued_tokens=0), SETTINGS)
        assert (decision.outcome, decision.admitted_max_length, decision.allowance_tokens) == ("downgraded", 512, 512)


def test_wait_time_is_the_estimate_and_the_own_output() -> None:
    pool = Pool(workers=(FAST,), queued_tokens=1800)
    asked = Request(models=(MODEL,), max_length=3000, max_context_length=4096)
    assert decide(asked, pool, SETTINGS).wait_time_s == 180.0 + 300.0
    assert decide(replace(asked, allow_downgrade=True), pool, SETTINGS).wait_time_s == 180.0 + 230.4
    assert decide(asked, Pool(workers=(), queued_tokens=1800), SETTINGS).wait_time_s is None


def test_the_notes_say_what_is_assumed_unknown_and_too_slow() -> None:
    workers = (
        replace(FAST, worker_id="new", measured=False),
        replace(FAST, worker_id="silent", flagged=None),
        replace(FAST, worker_id="sizeless", max_length=None),
        replace(FAST, worker_id="unreadable", models=None),
        replace(FAST, worker_id="elsewhere", models=("other",), max_length=None),
    )
    request = Request(
        models=(MODEL,), max_length=4096, max_context_length=4096, workers=("elsewhere",) * 6, worker_blacklist=True
    )
    notes = decide(request, Pool(workers=workers, queued_tokens=0), SETTINGS).notes
    assert len(notes) == 5
    says = (
        "1 of 2 eligible workers not measured",
        "1 of 2 eligible workers do not report",
        "2 of 5 workers",
        "first 5 of the 6",
        "4096 tokens within the 150 s",
    )
    assert all(words in note for words, note in zip(says, notes, strict=True))
    lonely = decide(Request(models=(MODEL,)), Pool(workers=(), queued_tokens=0), SETTINGS)
    assert lonely.notes == ("No online worker can take it now: it waits until one can, or expires.",)
    assert decide(Request(models=(MODEL,)), Pool(workers=(FAST,), queued_tokens=0), SETTINGS).notes == ()


def test_hostile_names_never_stand_in_the_message() -> None:
    model = "<img src=x onerror=alert(1)> =cmd 8B"
    worker = replace(FAST, models=(model,), name="=HYPERLINK()")
    for length in (80, 4096, 16384):
        request = Request(models=(model,), max_length=length, max_context_length=max(2048, length))
        assert "<" not in decide(request, Pool(workers=(worker,), queued_tokens=3000), SETTINGS).message


class TestQueue:
    QUEUE = (
        Waiting(Request(models=(MODEL,), max_length=1000), queue_key(0.0, 5_000_000, 0)),
        Waiting(Request(models=("other",), max_length=500), queue_key(0.0, 5_000_000, 1)),
        Waiting(Request(models=(MODEL,), max_length=100, n=3), queue_key(0.0, 35_000_000, 2), remaining_n=3),
    )

    def queued(self, key: QueueKey | None, settings: AllowanceSettings = SETTINGS) -> float:
        return decide(Request(models=(MODEL,)), Pool(workers=(FAST,), waiting=self.QUEUE), settings, key=key).queued_tokens

    def test_what_is_ahead_goes_by_priority_then_creation_then_row(self) -> None:
        assert self.queued(queue_key(0.0, 40_000_000, 3)) == 1300
        assert self.queued(queue_key(0.0, 35_000_000, 1)) == 1000
        assert self.queued(queue_key(0.0, 35_000_000, 3)) == 1300
        assert self.queued(queue_key(1e6, 40_000_000, 3)) == 0
        assert self.queued(queue_key(-50.0, 5_000_000, 3)) == 1000
        assert self.queued(queue_key(-151.0, 5_000_000, 3)) == 1300

    def test_fifty_kudos_are_ten_seconds(self) -> None:
        # 50 kudos weigh up the three ageing steps of 30 s only together
        assert self.queued(queue_key(150.0, 35_000_000, 3)) == 1000
        assert self.queued(queue_key(150.1, 35_000_000, 3)) == 0

    def test_ahead_all_counts_whatever_waits(self) -> None:
        assert self.queued(None, SETTINGS.changed(ahead="all")) == 1300
        assert self.queued(queue_key(1e6, 40_000_000, 3), SETTINGS.changed(ahead="all")) == 1300

    def test_the_key_is_needed_for_the_queue_order(self) -> None:
        with pytest.raises(InputError, match="its queue key"):
            self.queued(None)

    def test_what_no_eligible_worker_could_take_does_not_count(self) -> None:
        too_long = Waiting(Request(models=(MODEL,), max_length=9000), queue_key(0.0, 0, 9))
        pool = Pool(workers=(FAST,), waiting=(*self.QUEUE, too_long))
        assert decide(Request(models=(MODEL,)), pool, SETTINGS, key=queue_key(0, 40_000_000, 10)).queued_tokens == 1300

    def test_the_load_on_one_model_reaches_another_only_through_a_shared_worker(self) -> None:
        key = queue_key(0.0, 40_000_000, 10)
        shared = replace(FAST, worker_id="both", models=(MODEL, "other"))
        apart = decide(Request(models=(MODEL,)), Pool(workers=(FAST,), waiting=self.QUEUE), SETTINGS, key=key)
        joined = decide(Request(models=(MODEL,)), Pool(workers=(shared,), waiting=self.QUEUE), SETTINGS, key=key)
        assert (apart.queued_tokens, joined.queued_tokens) == (1300, 1800)

    @pytest.mark.parametrize("n", [-1, 1.5, True])
    def test_a_senseless_number_of_answers_is_refused(self, n: int) -> None:
        with pytest.raises(InputError, match="remaining_n"):
            Waiting(Request(models=()), queue_key(0, 0, 0), n)


def test_a_pool_needs_exactly_one_figure_of_the_queue() -> None:
    with pytest.raises(InputError):
        Pool(workers=(), queued_tokens=0, waiting=())
    with pytest.raises(InputError):
        decide(Request(models=()), Pool(workers=(), queued_tokens=float("nan")), SETTINGS)


@st.composite
def queues(draw: st.DrawFn) -> tuple[Waiting, ...]:
    waiting = []
    for row in range(draw(st.integers(0, 8))):
        request = draw(some.requests())
        key = queue_key(request.starting_priority, draw(st.integers(0, 60_000_000)), row)
        waiting.append(Waiting(request, key, request.n))
    return tuple(waiting)


@given(
    request=some.requests(),
    fleet=some.fleets(8, ok=True),
    waiting=queues(),
    settings=some.settings(),
    created_us=st.integers(0, 60_000_000),
)
def test_it_agrees_with_the_arrival_of_the_replay_page(
    request: Request, fleet: tuple[Worker, ...], waiting: tuple[Waiting, ...], settings: AllowanceSettings, created_us: int
) -> None:
    def plain(asked: Request) -> Request:
        return replace(asked, trusted_workers=False, validated_backends=False, workers=())

    queue = tuple(replace(other, request=plain(other.request)) for other in waiting)
    key = queue_key(request.starting_priority, created_us, len(queue))
    decision = decide(plain(request), Pool(workers=fleet, waiting=queue), settings, key=key)
    expected = arrive(plain(request), fleet, queue, settings, created_us, len(queue))
    assert {
        "outcome": decision.outcome,
        "reason": decision.reason,
        "allowance": decision.allowance_tokens,
        "estimated_wait_s": decision.estimated_wait_s,
        "admitted_max_length": decision.admitted_max_length,
    } == expected
