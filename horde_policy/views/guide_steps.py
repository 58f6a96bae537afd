"""What each step of the workshop says: figures and sentences, computed from the bundled data by the library each time.

Nothing here is written down as a result: the same data give the same figures, and ``docs/workshop.md`` is held against them
by a test.
"""

from collections.abc import Callable
from dataclasses import dataclass

import polars as pl

from horde_policy.board.measure import Measure, measure
from horde_policy.board.rows import Board, make_board
from horde_policy.budget import Certain, Declared, Reservation, reserve_cost, worst_case
from horde_policy.budget.body import read_request
from horde_policy.budget.money import money_text
from horde_policy.budget.prices import Price
from horde_policy.budget.reservation import DEFAULT_OUTPUT_TOKENS
from horde_policy.policy.allowance import free_output_allowance
from horde_policy.policy.alternatives import old_rule_allowance
from horde_policy.review.finding import Finding
from horde_policy.review.findings import Week
from horde_policy.review.whatif import what_if
from horde_policy.units import one_or_range
from horde_policy.views.figures.guide import NamedPoint
from horde_policy.views.finding_text import finding_text
from horde_policy.views.guide import BUSY, IDLE, OTHER_BACKEND, SEVERAL_SIZES, SHARED_NAME, STUCK
from horde_policy.views.review_words import bounds_text, word_text
from horde_policy.views.text import count, seconds, speed, tokens
from horde_policy.views.tiles import tile

__all__ = ["FLOOR_TRIED_TOKENS", "MORE_REQUESTS", "NEEDS_WEEK", "Content", "Material", "step_content"]

MORE_REQUESTS = 400
"""Requests for one model that step 1 adds to the queue."""

FLOOR_TRIED_TOKENS = 1024
OPEN_REQUESTS = 20
RESERVED_TOKENS = DEFAULT_OUTPUT_TOKENS
HELD_IN_FULL_TOKENS = 32_000
NEEDS_WEEK = frozenset({5, 6, 7})
"""Steps that read the demo week."""


@dataclass(frozen=True, slots=True)
class Material:
    """What the steps are computed from: the demo's board at the default size, what step 8 prices, the reviewed demo week.

    The request is the body that the Budget page begins with. The week may be null for steps that are not in :data:`NEEDS_WEEK`.
    """

    board: Board
    price: Price
    request: bytes
    week: Week | None = None

    def of(self, *models: str, size: int = 80) -> Measure:
        """Return the measure of a request that names some models, at a size."""
        return measure(self.board.fleet, models, size)

    def reviewed(self) -> Week:
        """Return the week.

        Raises
        ------
        ValueError
            It was not loaded.
        """
        if self.week is None:
            raise ValueError("this step needs the week")
        return self.week


@dataclass(frozen=True, slots=True)
class Content:
    """What a step shows: tiles, sentences in plain text, and points on the curve (none: no figure)."""

    tiles: tuple[dict[str, object], ...]
    sentences: tuple[str, ...]
    points: tuple[NamedPoint, ...] = ()

    def figures(self) -> tuple[str, ...]:
        """Return the figures of the tiles as they read, with their units."""
        return tuple(f"{t['value']} {t['unit']}".strip() for t in self.tiles)


def step_content(step: int, material: Material) -> Content:
    """Return what a step says.

    Parameters
    ----------
    step
        From 1 to 8.
    material
        With the week where :data:`NEEDS_WEEK` asks for it.
    """
    return _CONTENTS[step - 1](material)


def _short(name: str) -> str:
    return name.rpartition("/")[2]


def _wait_s(found: Measure) -> float:
    if found.waits is None:
        raise ValueError(f"the demo gives no wait for {', '.join(found.models)}")
    return found.waits.named_s


def _workers(found: Measure) -> str:
    return f"{count(found.eligible_workers)} {'worker' if found.eligible_workers == 1 else 'workers'}"


def _point(name: str, found: Measure) -> NamedPoint:
    return NamedPoint(name, _wait_s(found), found.state)


def _horde_wide(material: Material) -> Content:
    performance = material.board.snapshot.performance
    if performance is None or performance.text_thread_count is None or performance.queued_text_requests is None:
        raise ValueError("the demo reports its threads and queued requests")
    threads, queued = performance.text_thread_count, performance.queued_text_requests
    old = old_rule_allowance(threads, queued)
    later = old_rule_allowance(threads, queued + MORE_REQUESTS)
    idle, stuck = material.of(IDLE), material.of(STUCK)
    open_threads = material.board.pulse.threads
    return Content(
        (
            tile("Previous rule, every model", tokens(old), unit="tokens"),
            tile(f"{_short(IDLE)} now", tokens(idle.allowance_tokens), unit="tokens", sub="idle"),
            tile(f"{_short(STUCK)} now", tokens(stuck.allowance_tokens), unit="tokens", sub=f"wait {seconds(_wait_s(stuck))}"),
        ),
        (
            f"The previous rule counted the whole horde: {count(threads)} threads and {count(queued)} queued requests made "
            f"{tokens(old)} tokens, for every model alike.",
            f"These are the threads that the server reports; the Overview counts the {count(open_threads)} of workers that take "
            "requests.",
            f"{_short(IDLE)} stands idle at {speed(idle.speed_tok_per_s)} tok/s; {_short(STUCK)} has a backlog of "
            f"{seconds(_wait_s(stuck))}. Both got {tokens(old)}.",
            f"{count(MORE_REQUESTS)} more requests, all for one model, would have taken every model from {tokens(old)} tokens "
            f"to {tokens(later)}.",
            f"Measured by each model's own wait it is {tokens(idle.allowance_tokens)} and {tokens(stuck.allowance_tokens)}.",
        ),
        (_point(_short(IDLE), idle), _point(_short(STUCK), stuck)),
    )


def _curve(material: Material) -> Content:
    settings = material.board.settings
    full, floor = settings.wait_full_s, settings.wait_floor_s
    waits = (full, (full + floor) / 2, floor)
    given = [free_output_allowance(wait, settings) for wait in waits]
    fall = (settings.ceiling_tokens - settings.floor_tokens) / (floor - full)
    busy = material.of(BUSY)
    return Content(
        tuple(tile(f"At {seconds(w)}", tokens(a), unit="tokens") for w, a in zip(waits, given, strict=True)),
        (
            f"Up to {seconds(full)} the allowance is the ceiling, {tokens(given[0])} tokens; from {seconds(floor)} on the floor, "
            f"{tokens(given[2])}.",
            f"Between the marks each second of waiting takes {fall:.1f} tokens; the middle, {seconds(waits[1])}, gives "
            f"{tokens(given[1])}.",
            f"{_short(BUSY)} is at {seconds(_wait_s(busy))}: {tokens(busy.allowance_tokens)} tokens are free.",
            "What is larger needs its kudos held. Nobody is shut out: a smaller request is free.",
        ),
        (_point(_short(BUSY), busy),),
    )


def _whose_wait(material: Material) -> Content:
    here, there = material.of(SHARED_NAME), material.of(OTHER_BACKEND)
    both = material.of(SHARED_NAME, OTHER_BACKEND)
    return Content(
        tuple(
            tile(label, seconds(_wait_s(found)), sub=f"{tokens(found.allowance_tokens)} tokens free")
            for label, found in (("With koboldcpp", here), ("With northway", there), ("Naming both", both))
        ),
        (
            f"{SHARED_NAME}: {tokens(here.queued_tokens)} tokens wait for {count(here.eligible_workers)} workers of "
            f"{speed(here.speed_tok_per_s)} tok/s together, so {seconds(_wait_s(here))}.",
            f"{OTHER_BACKEND}: nothing waits for its worker of {speed(there.speed_tok_per_s)} tok/s, so "
            f"{tokens(there.allowance_tokens)} tokens are free.",
            f"A client that names both shares the workers of both: {tokens(both.queued_tokens)} tokens at "
            f"{speed(both.speed_tok_per_s)} tok/s, {seconds(_wait_s(both))}.",
            "The wait is that of the workers that could serve this request, and of nobody else.",
        ),
        (_point("koboldcpp", here), _point("northway", there), _point("both", both)),
    )


def _sizes(material: Material) -> Content:
    found = {size: material.of(SEVERAL_SIZES, size=size) for size in (80, 1024, 2048)}
    small, large, huge = found[80], found[1024], found[2048]
    return Content(
        tuple(
            tile(
                f"Asking for {tokens(size)}",
                seconds(_wait_s(m)) if m.eligible_workers else "no worker",
                sub=f"{tokens(m.allowance_tokens)} tokens free, {_workers(m)}",
            )
            for size, m in found.items()
        ),
        (
            f"{_short(SEVERAL_SIZES)} at 80 tokens: {count(small.eligible_workers)} workers, "
            f"{speed(small.speed_tok_per_s)} tok/s, {seconds(_wait_s(small))}.",
            f"At 1,024 tokens one of them does not take it: {speed(large.speed_tok_per_s)} tok/s are left, the same queue lasts "
            f"{seconds(_wait_s(large))}, and {tokens(large.allowance_tokens)} tokens are free.",
            f"At 2,048 tokens no worker takes it, so it has no wait and no point on the curve; the allowance is the floor, "
            f"{tokens(huge.allowance_tokens)}. Without kudos it is refused; with them it would queue, and no worker would "
            "take it.",
            f"The largest free request is {tokens(small.largest_free_request_tokens)} tokens: what a worker takes and the "
            "allowance covers at that same size.",
        ),
        (_point("80 tokens", small), _point("1,024 tokens", large)),
    )


def _finding(week: Week, code: str) -> Finding:
    return next(finding for finding in week.findings if finding.code == code)


def _week(material: Material) -> Content:
    week = material.reviewed()
    decisions = week.exported.decisions
    by_outcome = {
        outcome: float(decisions.filter(decisions["outcome"] == outcome)["count_high"].sum())
        for outcome in ("free", "funded", "downgraded", "refused")
    }
    funded = decisions.filter(decisions["outcome"] == "funded").group_by("requester").agg(pl.col("count_high").sum())
    told_funded = ", ".join(
        f"{count(number)} {word_text('requester', who)}" for who, number in funded.sort("requester").iter_rows()
    )
    refused = finding_text(_finding(week, "refused"))
    moves = finding_text(_finding(week, "allowance_moves"))
    return Content(
        tuple(tile(outcome.capitalize(), count(number), unit="requests") for outcome, number in by_outcome.items()),
        (
            f"{bounds_text(week.exported.counted)} decisions: real arrivals, replayed; the people in them are made up.",
            f"Funded: {told_funded}.",
            refused.sentence,
            *refused.details[:2],
            moves.sentence,
        ),
    )


def _funded(material: Material) -> Content:
    verdict = material.reviewed().verdict
    told = finding_text(_finding(material.reviewed(), "funded_wait"))
    registered, share = verdict.registered, verdict.share_over
    held = None if verdict.funded is None else verdict.funded.p
    if registered is None or share is None or held is None:
        raise ValueError("the demo week has funded requests and registered waits")
    return Content(
        (
            tile("Registered waits over 300 s", f"{100 * registered.part.high / registered.total.high:.1f}", unit="%"),
            tile(
                "Funded waits over 300 s",
                one_or_range(f"{100 * share.low:.0f}", f"{100 * share.high:.0f}"),
                unit="%",
                sub="as far as counts tell",
            ),
            tile(
                "Funded by registered accounts", count(held.funded.high), sub=f"of {count(held.by_decisions.total.high)} admitted"
            ),
        ),
        (told.sentence, *told.details[:3]),
    )


def _setting(material: Material) -> Content:
    settings = material.board.settings
    changed = settings.changed(floor_tokens=FLOOR_TRIED_TOKENS)
    stuck, busy = material.of(STUCK), material.of(BUSY)
    answer = what_if(material.reviewed().exported.decisions, settings, changed)
    at_floor = free_output_allowance(_wait_s(stuck), changed)
    taken = measure(make_board(material.board.snapshot, changed).fleet, stuck.models, 80).largest_free_request_tokens
    on_slope = free_output_allowance(_wait_s(busy), changed)
    refused = bounds_text(answer.after["refused"])
    return Content(
        (
            tile(
                "Refused in the week",
                bounds_text(answer.before["refused"]),
                unit="requests",
                sub=f"floor {settings.floor_tokens}",
            ),
            tile(f"With a floor of {tokens(FLOOR_TRIED_TOKENS)}", refused, sub="requests, as the buckets decide"),
            tile(f"{_short(STUCK)}", tokens(at_floor), unit="tokens", sub=f"was {tokens(stuck.allowance_tokens)}"),
        ),
        (
            f"A floor of {tokens(FLOOR_TRIED_TOKENS)} tokens lifts {_short(STUCK)} from {tokens(stuck.allowance_tokens)} to "
            f"{tokens(at_floor)} and {_short(BUSY)} from {tokens(busy.allowance_tokens)} to {tokens(on_slope)}.",
            f"An allowance is no worker: the largest free request on {_short(STUCK)} was "
            f"{tokens(stuck.largest_free_request_tokens)} tokens and is {tokens(taken)}.",
            f"Of {bounds_text(answer.counted)} requests of the week {bounds_text(answer.before['refused'])} were refused; it "
            f"would have been {refused}.",
            "The counts hold the waits as they were. What is freed queues too, and makes others wait: that only a replay shows.",
            "The replay lays the same change over real arrivals, with today's settings beside it: read what expires and who "
            "fares worse before what is refused.",
        ),
        (),
    )


def _budget(material: Material) -> Content:
    ask = read_request(material.request, model=None)

    def bound(reserve: int) -> tuple[Reservation, str, str]:
        held = reserve_cost(ask, material.price, output_tokens=reserve)
        declared, certain = (worst_case([held] * OPEN_REQUESTS, inputs=of).stated_pico for of in (Declared(), Certain()))
        return held, money_text(declared), money_text(certain)

    (some, over, over_full_inputs), (whole, whole_over, whole_over_full_inputs) = (
        bound(RESERVED_TOKENS),
        bound(HELD_IN_FULL_TOKENS),
    )
    if some.limit_tokens is None:
        raise ValueError("the example request limits its output")
    hold, whole_hold = money_text(some.hold_pico), money_text(whole.hold_pico)
    return Content(
        (
            tile("Held for one request", hold),
            tile(f"Over, with {OPEN_REQUESTS} open", over, sub="if inputs are at most 1.7 × the estimate"),
            tile("Over, at most", over_full_inputs, sub="if every input fills the context window"),
            tile("Over, all of it held", whole_over, sub=f"inputs to 1.7 ×; holds {whole_hold} each"),
        ),
        (
            f"The request on the page has {count(ask.body_bytes)} bytes and asks for {count(some.choices)} answers of up to "
            f"{tokens(some.limit_tokens)} tokens. Held are its input and at most {tokens(RESERVED_TOKENS)} tokens of each: "
            f"{hold}.",
            f"With {OPEN_REQUESTS} open like it, {money_text(some.hold_pico * OPEN_REQUESTS)} are held, and they can go {over} "
            f"over if inputs are at most 1.7 × the estimate; {over_full_inputs} if every input fills the context window.",
            f"Holding all {tokens(HELD_IN_FULL_TOKENS)} tokens makes that {whole_over} and {whole_over_full_inputs}, for the "
            f"input alone, and refuses earlier: {whole_hold} are held for each.",
            "A request without an output limit has no bound, unless its model's price declares a ceiling.",
        ),
    )


_CONTENTS: tuple[Callable[[Material], Content], ...] = (
    _horde_wide,
    _curve,
    _whose_wait,
    _sizes,
    _week,
    _funded,
    _setting,
    _budget,
)
