"""The workshop: its figures are recomputed here from the bundled files by other means, and the speaker notes hold the same."""

import json
import re
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from math import floor
from pathlib import Path
from typing import Any

import pytest

from horde_policy.board.rows import make_board
from horde_policy.budget import load_prices, reserve_cost
from horde_policy.budget.body import read_request
from horde_policy.review.findings import review_week
from horde_policy.review.loading import DEMO_WEEK, load_exports
from horde_policy.settings import AllowanceSettings
from horde_policy.sources.demo import BUNDLED_FOLDER, DEMO_FOLDER
from horde_policy.sources.recorded import load_recorded
from horde_policy.views.budget_state import parse_budget_state
from horde_policy.views.budget_words import worst_sentences
from horde_policy.views.figures.guide import fig_named_points
from horde_policy.views.guide import BUSY, IDLE, ONWARD, OTHER_BACKEND, SEVERAL_SIZES, SHARED_NAME, STEPS, STUCK, link_query
from horde_policy.views.guide_steps import NEEDS_WEEK, Content, Material, step_content
from horde_policy.views.review_state import parse_review_state
from horde_policy.views.state import parse_view_state
from tests.navigation import pages_of_the_app

NOTES = (Path(__file__).parents[3] / "docs" / "workshop.md").read_text(encoding="utf-8")
REQUEST = (BUNDLED_FOLDER / "prices" / "example-request.json").read_bytes().strip()
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")


@pytest.fixture(scope="module")
def contents() -> list[Content]:
    settings = AllowanceSettings()
    price = load_prices(BUNDLED_FOLDER / "prices" / "example-hosted.toml").price("large", at=datetime(2026, 1, 1, tzinfo=UTC))
    board = make_board(load_recorded(DEMO_FOLDER, kind="demo"), settings)
    material = Material(board, price, REQUEST, review_week(load_exports([DEMO_WEEK]), settings))
    return [step_content(step, material) for step in range(1, len(STEPS) + 1)]


def demo(name: str) -> Any:
    return json.loads((DEMO_FOLDER / f"{name}.json").read_text(encoding="utf-8"))["response"]["body"]


def pool(*models: str, size: int = 80) -> tuple[int, Fraction, Fraction]:
    """Workers, speed and queue of a request, from the demo's own files and the rule's words (A7, A8)."""
    able = [
        worker
        for worker in demo("workers_text")
        if worker["online"]
        and not worker["maintenance_mode"]
        and not worker.get("flagged")
        and worker["max_length"] >= size
        and worker["max_context_length"] >= 2048
        and set(models) & set(worker["models"])
    ]
    speeds = [Fraction(worker["performance"].split()[0]) if worker["requests_fulfilled"] else Fraction(10) for worker in able]
    queue = sum(Fraction(str(row["queued"])) for row in demo("models_text") if row["name"] in models)
    return len(able), sum(speeds, Fraction(0)), Fraction(queue)


def wait_s(*models: str, size: int = 80) -> Fraction:
    _, speed, queue = pool(*models, size=size)
    return queue / speed


def allowance(wait: Fraction, ceiling: int = 4096, least: int = 512) -> int:
    """A2–A4 in whole tokens."""
    share = min(Fraction(1), max(Fraction(0), (wait - 60) / 240))
    return floor(ceiling - (ceiling - least) * share)


def numbers(text: str) -> list[str]:
    return [number.rstrip(",") for number in NUMBER.findall(text)]


def check_said(content: Content, *figures: object) -> None:
    text = " ".join((*content.figures(), *(str(t["sub"]) for t in content.tiles), *content.sentences))
    missing = [figure for figure in map(str, figures) if figure not in numbers(text)]
    assert not missing, f"{missing} not in: {text}"


def test_a_horde_wide_count_gives_one_figure_to_all(contents: list[Content]) -> None:
    performance = demo("performance")
    threads, queued = performance["text_thread_count"], performance["queued_text_requests"]

    def old(requests: float) -> int:
        return int(min(512, max(256, 512 + 5 * threads - 0.9 * requests)))

    check_said(contents[0], threads, f"{queued:.0f}", old(queued), old(queued + 400), f"{float(pool(IDLE)[1]):.1f}")
    assert wait_s(IDLE) == 0
    assert wait_s(STUCK) > 300
    check_said(contents[0], f"{float(wait_s(STUCK)):.0f}", f"{allowance(wait_s(IDLE)):,}", allowance(wait_s(STUCK)))


def test_the_threads_of_the_overview_stand_beside_those_of_the_server(contents: list[Content]) -> None:
    shown = make_board(load_recorded(DEMO_FOLDER, kind="demo"), AllowanceSettings()).pulse.threads
    assert shown != demo("performance")["text_thread_count"]
    check_said(contents[0], shown)


def test_the_curve(contents: list[Content]) -> None:
    check_said(contents[1], *(f"{allowance(Fraction(at)):,}" for at in (60, 180, 300)), f"{(4096 - 512) / 240:.1f}")
    check_said(contents[1], f"{float(wait_s(BUSY)):.0f}", f"{allowance(wait_s(BUSY)):,}")


def test_the_wait_is_that_of_the_workers_that_could_serve_it(contents: list[Content]) -> None:
    for models in ((SHARED_NAME,), (OTHER_BACKEND,), (SHARED_NAME, OTHER_BACKEND)):
        workers, speed, queue = pool(*models)
        check_said(contents[2], f"{float(speed):.1f}", f"{float(queue / speed):.0f}", f"{allowance(queue / speed):,}")
        assert workers
    check_said(contents[2], f"{float(pool(SHARED_NAME)[2]):,.0f}", pool(SHARED_NAME)[0])


def test_the_pool_shrinks_with_the_size(contents: list[Content]) -> None:
    assert [pool(SEVERAL_SIZES, size=size)[0] for size in (80, 1024, 2048)] == [2, 1, 0]
    for size in (80, 1024):
        wait = wait_s(SEVERAL_SIZES, size=size)
        check_said(contents[3], f"{float(pool(SEVERAL_SIZES, size=size)[1]):.1f}", f"{float(wait):.0f}", f"{allowance(wait):,}")
    waits = [f"{float(wait_s(SEVERAL_SIZES, size=size)):.0f} s" for size in (80, 1024)]
    assert contents[3].figures() == (*waits, "no worker"), "the step asks for the wait, so its tiles tell it"


def test_the_week_is_counted_from_its_files(contents: list[Content]) -> None:
    decisions = load_exports([DEMO_WEEK]).decisions
    counts: dict[str, float] = {}
    for row in decisions.iter_rows(named=True):
        counts[row["outcome"]] = counts.get(row["outcome"], 0.0) + row["count_low"]
    total = sum(counts.values())
    check_said(contents[4], *(f"{number:,.0f}" for number in counts.values()), f"{total:,.0f}")
    check_said(contents[4], f"{100 * counts['refused'] / total:.1f}")
    funded = decisions.filter(decisions["outcome"] == "funded")
    for who in ("registered", "shared_key"):
        check_said(contents[4], f"{funded.filter(funded['requester'] == who)['count_low'].sum():,.0f}")


def test_registered_waits_are_counted_from_their_histogram(contents: list[Content]) -> None:
    exported = load_exports([DEMO_WEEK])
    total = over = 0.0
    for row in exported.waits.iter_rows(named=True):
        if row["kind"] == "queue" and row["requester"] == "registered":
            total += row["count_low"]
            over += row["count_low"] if row["lower_s"] >= 300 else 0.0
    funded = sum(
        r["count_low"]
        for r in exported.decisions.iter_rows(named=True)
        if r["outcome"] == "funded" and r["requester"] == "registered"
    )
    check_said(contents[5], f"{100 * over / total:.1f}", f"{funded:,.0f}")
    admitted = sum(
        r["count_low"]
        for r in exported.decisions.iter_rows(named=True)
        if r["outcome"] != "refused" and r["requester"] == "registered"
    )
    assert contents[5].tiles[2]["sub"] == f"of {admitted:,.0f} admitted", "the refused are registered decisions, too"
    assert f"Of their admitted decisions {100 * (1 - funded / admitted):.1f} % held none" in " ".join(contents[5].sentences)


def test_another_floor_keeps_every_order(contents: list[Content]) -> None:
    check_said(contents[6], f"{allowance(wait_s(STUCK), least=1024):,}", f"{allowance(wait_s(BUSY), least=1024):,}")
    most = max(size for size in range(1, 1025) if pool(STUCK, size=size)[0])
    free = min(most, allowance(wait_s(STUCK, size=most), least=1024))
    assert f"was {free} tokens and is {free}." in contents[6].sentences[1], "a higher floor frees nothing that no worker takes"
    decisions = load_exports([DEMO_WEEK]).decisions
    freed_at_least = sum(
        row["count_low"]
        for row in decisions.iter_rows(named=True)
        if row["outcome"] == "refused" and row["requested_size"] in ("<=512", "513-1024")
    )
    refused = sum(row["count_low"] for row in decisions.iter_rows(named=True) if row["outcome"] == "refused")
    low, high = (int(n.replace(",", "")) for n in str(contents[6].tiles[1]["value"]).split(" to "))
    assert low <= high <= refused - freed_at_least, "what a floor of 1,024 covers is free for certain"


def test_the_bound_of_a_budget_is_that_of_the_page_that_the_step_opens(contents: list[Content]) -> None:
    million = Decimal(1_000_000)
    answers, asked, output = json.loads(REQUEST)["n"], json.loads(REQUEST)["max_completion_tokens"], Decimal(15) / million
    read = Decimal(len(REQUEST)) / 4 * 3 / million
    held, whole = read + answers * 4096 * output, read + answers * asked * output
    check_said(contents[7], *(f"{figure:.4f}" for figure in (held, 20 * held, whole)))
    table = load_prices(BUNDLED_FOLDER / "prices" / "example-hosted.toml")
    for link in STEPS[7].links:
        state, notes = parse_budget_state(link.extra)
        assert (notes, state.prices, state.alike) == ((), "example-hosted", 20)
        ask = read_request(REQUEST, model=None)
        shown = reserve_cost(
            ask, table.price(str(ask.model), at=datetime(2026, 11, 29, tzinfo=UTC)), output_tokens=state.reserve_tokens
        )
        on_the_page = worst_sentences(shown, state.alike)[:2]
        check_said(contents[7], *(sentence.split("can go $")[1].split(" over")[0] for sentence in on_the_page))
    at_most = next(tile for tile in contents[7].tiles if "at most" in str(tile["label"]))
    assert f"{at_most['value']} if every input fills the context window" in contents[7].sentences[1], "the most is the most"


# --- links and notes -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", range(1, len(STEPS) + 1))
@pytest.mark.parametrize("deployment", [AllowanceSettings(), AllowanceSettings(floor_tokens=256, wait_full_s=30)])
def test_every_link_is_read_back_as_it_was_meant(number: int, deployment: AllowanceSettings) -> None:
    for link in STEPS[number - 1].links:
        query = link_query(link, number, deployment)
        own = {name for name in query if name in link.extra or (link.review is not None and name in link.review.query())}
        state, notes = parse_view_state({n: v for n, v in query.items() if n not in own}, deployment)
        assert notes == ()
        assert (state.step, state.source, state.settings) == (number, "demo", AllowanceSettings())
        for name, value in link.changes.items():
            assert getattr(state, name) == value
        if link.review is not None:
            assert parse_review_state({n: v for n, v in query.items() if n in own}) == (link.review, ())


def test_every_link_leads_to_a_page_of_the_navigation() -> None:
    assert {link.page for step in STEPS for link in step.links} <= {page.url for page in pages_of_the_app()}


def sections() -> dict[str, str]:
    return {part.partition("\n")[0]: part.partition("\n")[2] for part in NOTES.split("\n## ")[1:]}


def test_the_notes_have_one_section_a_step_and_the_same_figures(contents: list[Content]) -> None:
    *steps, finish = sections()
    assert (steps, finish) == ([f"{number}. {step.title}" for number, step in enumerate(STEPS, start=1)], "Finish")
    for step, content, text in zip(STEPS, contents, [sections()[name] for name in steps], strict=True):
        assert step.question in text
        for sentence in content.sentences:
            assert f"- {sentence}\n" in text
        for tile, figure in zip(content.tiles, content.figures(), strict=True):
            assert f"{tile['label']} {figure}" in text
        for link in step.links:
            assert link.label in text
        page = " ".join(
            (*content.figures(), *content.sentences, *(str(t["label"]) for t in content.tiles), *(x.label for x in step.links))
        )
        astray = set(numbers(text)) - set(numbers(page + step.question))
        assert not astray, f"{step.title}: {astray} stand in the notes and not on the page"


def test_the_notes_end_with_what_the_finish_shows() -> None:
    for number, step in enumerate(STEPS, start=1):
        assert f"{number}. {step.lesson}\n" in sections()["Finish"]
    for page, label, _ in ONWARD:
        assert f"{label} (`/{page}`)" in sections()["Finish"]
    assert {page for page, _, _ in ONWARD} <= {page.url for page in pages_of_the_app()}


def test_only_steps_about_the_week_need_it(contents: list[Content]) -> None:
    assert len(contents) == len(STEPS)
    board = make_board(load_recorded(DEMO_FOLDER, kind="demo"), AllowanceSettings())
    price = load_prices(BUNDLED_FOLDER / "prices" / "example-hosted.toml").price("large", at=datetime(2026, 1, 1, tzinfo=UTC))
    for step in range(1, len(STEPS) + 1):
        if step in NEEDS_WEEK:
            with pytest.raises(ValueError, match="week"):
                step_content(step, Material(board, price, REQUEST))
        else:
            assert step_content(step, Material(board, price, REQUEST)) == contents[step - 1]


def test_the_words_of_both_marks_have_a_row_of_their_own(contents: list[Content]) -> None:
    for content in contents:
        if content.points:
            notes = fig_named_points(content.points, AllowanceSettings(), "light").layout.annotations
            full, floor = (next(note for note in notes if note.text.startswith(word)) for word in ("full wait", "floor wait"))
            assert full.yshift - floor.yshift >= full.font.size, "one word stands over the other, also where the plot is narrow"
