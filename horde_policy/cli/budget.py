"""``budget replay|status|explain``: hard budgets on recorded requests, a ledger as it stands, one request's hold (B1–B13)."""

import json
import sys
from decimal import ROUND_UP, Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from horde_policy.budget.audit import LABELS, Audit, BudgetStatus, WindowStatus
from horde_policy.budget.body import api_of_route, read_request
from horde_policy.budget.bound import Certain, Declared, InputAssumption, Measured, bound_without_count, gap_ratio, worst_case
from horde_policy.budget.holding import Hold
from horde_policy.budget.ledger import Ledger
from horde_policy.budget.money import money_column, money_text, to_pico, to_usd
from horde_policy.budget.price_table import PriceTable, load_prices
from horde_policy.budget.reservation import DEFAULT_OUTPUT_TOKENS, Reservation, reserve_cost
from horde_policy.cli.parquet_output import check_parquet_path, write_parquet
from horde_policy.clock import SystemClock
from horde_policy.errors import ConfigError, InputError
from horde_policy.views.budget_inputs import PricedRequests, from_file, from_trace, priced_model
from horde_policy.views.budget_state import BudgetState, asks_from_text

if TYPE_CHECKING:  # numba is loaded only where something is replayed
    from horde_policy.budget.simulate import BudgetReplay

__all__ = ["register"]

Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
Prices = Annotated[Path, typer.Option("--prices", help="Price table (TOML).")]

WIDE_CHARACTERS = 200

budget_app = typer.Typer(name="budget", help="Hard budgets: capped output reservations and their bound.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add the ``budget`` commands."""
    app.add_typer(budget_app)


@budget_app.command("replay")
def replay(
    requests: Annotated[Path, typer.Option("--requests", help="Requests (.parquet or .csv), or a public trace.")],
    prices: Prices,
    limit: Annotated[str, typer.Option("--limit", help="Limit of each window in dollars, as a decimal.")],
    out: Annotated[Path, typer.Option("--out", help="Where the run goes: one row a request and setting (.parquet).")],
    reserve: Annotated[
        list[str] | None, typer.Option("--reserve", help="reservation.output_tokens: a comma list, or repeated.")
    ] = None,
    window: Annotated[str, typer.Option("--window", help="day, week, month or total.")] = "total",
    zone: Annotated[str, typer.Option("--zone", help="Time zone of the windows.")] = "UTC",
    model: Annotated[str, typer.Option("--model", help="Of a trace: the model it is priced as; else the table's first.")] = "",
    asks: Annotated[
        str, typer.Option("--asks", help="Of a trace: the output limit, as agents, ladder, none or a number of tokens.")
    ] = "agents",
    pace: Annotated[float, typer.Option("--pace", min=0.1, max=100_000, help="Of a trace: output tokens a second.")] = 30.0,
    input_ratio: Annotated[
        float, typer.Option("--input-ratio", min=0.01, max=100, help="Of a trace: real input tokens to one estimated.")
    ] = 1.0,
    as_json: Json = False,
) -> None:
    """Replay recorded requests against a hard budget, for each reservation and each alternative (B11-B13)."""
    from horde_policy.budget.simulate import DEFAULT_RESERVES, replay_budget

    check_parquet_path(out, requests, prices)
    sizes = _whole_numbers(reserve, "reserve") or list(DEFAULT_RESERVES)
    table = load_prices(prices)
    given = _given_requests(requests, table, model=model, asks=asks, pace=pace, input_ratio=input_ratio)
    result = replay_budget(given.frame, table, limit, reserves=sizes, window=window, zone=zone)  # type: ignore[arg-type]
    stamp = {"kind": "budget run", "requests": requests.name, "prices": table.name, "limit_usd": _usd(result.limit_pico)}
    write_parquet(out, result.run, {**stamp, "window": window, "zone": zone, "assumed": list(given.assumed)})
    if as_json:
        settings = [dict(_money(name, value) for name, value in row.items()) for row in result.summary.to_dicts()]
        problems = [problem.text for problem in result.problems]
        _print_json(
            {
                "limit_usd": _usd(result.limit_pico),
                "assumed": list(given.assumed),
                "window": window,
                "zone": zone,
                "settings": settings,
                "problems": problems,
            }
        )
        return
    _print_replay(given, result)


@budget_app.command("status")
def status(
    ledger: Annotated[str, typer.Option("--ledger", help="Ledger: a SQLite file, or a postgresql:// URL.")],
    inputs: Annotated[
        str, typer.Option("--inputs", help="Input part of the worst case: certain, declared[=k] or measured.")
    ] = "certain",
    as_json: Json = False,
) -> None:
    """Show a ledger as it stands: spent, held, open requests, the worst case, and whether its counters are right."""
    book = Ledger(ledger, create=False)
    try:
        assumption = _assumption(inputs, book)
        budgets = book.status(inputs=assumption)
        audit, unwritten = book.audit(), book.open_holds()
    finally:
        book.close()
    if as_json:
        _print_json(
            {
                "ledger": book.name,
                "agrees": audit.agrees,
                "disputes": audit.disputes,
                "budgets": [_budget_json(budget) for budget in budgets],
                "open": [_hold_json(hold) for hold in unwritten],
            }
        )
    else:
        _print_status(book.name, budgets, audit, unwritten)


@budget_app.command("explain")
def explain(
    body: Annotated[Path, typer.Argument(help="Request body (JSON), as it is forwarded.")],
    prices: Prices,
    reserve: Annotated[int, typer.Option("--reserve", help="reservation.output_tokens.")] = DEFAULT_OUTPUT_TOKENS,
    model: Annotated[str | None, typer.Option("--model", help="The model, where the route names it.")] = None,
    provider: Annotated[str | None, typer.Option("--provider", help="The provider, where several offer the model.")] = None,
    route: Annotated[str | None, typer.Option("--route", help="The route it came by; without it the shape decides.")] = None,
    limit: Annotated[str | None, typer.Option("--limit", help="A limit in dollars: the bound without a count.")] = None,
    as_json: Json = False,
) -> None:
    """Explain one request's hold line by line, and how far it can go over."""
    try:
        content = body.read_bytes()
    except OSError as error:
        raise InputError("request body", "file", str(body), f"cannot be read: {error.strerror or error}") from error
    ask = read_request(content, api=None if route is None else api_of_route(route), model=model)
    if ask.model is None:
        raise InputError("request body", "model", None, "is not named", hint="--model names it")
    price = load_prices(prices).price(ask.model, provider=provider, at=SystemClock().now())
    held = reserve_cost(ask, price, output_tokens=reserve)
    found: dict[str, Any] = {
        "api": ask.api,
        "model": ask.model,
        "price": price.price_id,
        "lines": [
            {
                "label": x.label,
                "tokens": x.tokens,
                "usd_per_million": _text(x.usd_per_million),
                "usd": _usd(x.amount_pico),
                "note": x.note,
            }
            for x in held.explanation()
        ],
        "unseen": list(held.unseen),
        "api_from": "shape" if route is None else "route",
        "worst_case": _worst_json(held),
        "overspend_per_limit": _text(gap_ratio(held)),
    }
    if limit is not None:
        from horde_policy.budget.holding import Limit

        bound = bound_without_count(Limit("total", limit).pico, held)
        found["bound_without_count_usd"] = None if bound is None else _usd(bound)
    if as_json:
        _print_json(found)
    else:
        _print_explanation(found)


def _given_requests(path: Path, table: PriceTable, *, model: str, asks: str, pace: float, input_ratio: float) -> PricedRequests:
    """Return recorded requests that say everything, or those of a public trace with the rest assigned by the rules named."""
    from horde_policy.budget.requests import has_own_layout, load_requests
    from horde_policy.imports.traces import load_trace

    if has_own_layout(path):
        return from_file(load_requests(path), path.name, most=None)
    chosen = BudgetState(asks=asks_from_text(asks), pace_tok_per_s=pace, input_ratio=input_ratio, model=model)
    return from_trace(load_trace(path), path.name, priced_model(chosen, table), table, chosen, most=None)


def _print_replay(given: PricedRequests, result: "BudgetReplay") -> None:
    shown = _table(
        "setting", "admitted", "early", "at limit", "unpriced", "cut", "used", "overspend", "worst over", "largest W", "most open"
    )
    for row in result.summary.iter_rows(named=True):
        unbounded = " + unbounded" if row["unbounded"] else ""
        shown.add_row(
            row["setting"] + (" (default)" if row["is_default"] else ""),
            *(f"{row[name]:,}" for name in ("admitted", "refused_early", "refused_at_limit", "refused_unpriced", "cut")),
            f"{row['utilisation_ratio']:.1%}",
            money_text(row["overspend_pico"]),
            money_text(row["worst_over_pico"]) + unbounded,
            money_text(row["largest_bound_pico"]) + unbounded,
            f"{row['peak_open']:,}",
        )
    console = _console()
    budget = f"{money_text(result.limit_pico)} a window ({result.window}, {escape(result.zone)})"
    console.print(f"{given.frame.height:,} requests, limit {budget}")
    if given.assumed:
        console.print(escape("assumed, since a trace does not say: " + "; ".join(given.assumed)))
    console.print(shown)
    for problem in result.problems:
        console.print(f"{problem.level}: {escape(problem.text)}")


def _whole_numbers(given: list[str] | None, option: str) -> list[int]:
    found = []
    for word in (part.strip() for text in given or [] for part in text.split(",")):
        if not word.isascii() or not word.isdigit() or len(word) > 10:
            raise ConfigError(option, word, "must be a comma list of whole numbers of at least 0")
        found.append(int(word))
    return found


def _assumption(text: str, ledger: Ledger) -> InputAssumption:
    kind, _, factor = text.partition("=")
    if kind == "certain" and not factor:
        return Certain()
    if kind == "declared":
        return Declared(factor) if factor else Declared()
    if kind == "measured" and not factor:
        excess = ledger.measured_excess()
        if excess is None:
            raise InputError("inputs", "", text, "needs settled requests in the ledger, and there are none")
        return Measured(excess)
    raise ConfigError("inputs", text, "must be certain, declared, declared=<factor> or measured")


def _usd(pico: int) -> str:
    return f"{to_usd(pico):f}"


def _text(value: object) -> str | None:
    return None if value is None else f"{value:f}"


def _money(name: str, value: object) -> tuple[str, object]:
    """Return a field of the summary as JSON has it: money in dollars, as an exact decimal, under a name that says so."""
    if not name.endswith("_pico"):
        return name, value
    return f"{name.removesuffix('_pico')}_usd", _usd(value) if isinstance(value, int) else None


def _worst_json(held: Reservation) -> dict[str, Any]:
    kinds: dict[str, InputAssumption] = {"certain": Certain(), "declared": Declared()}
    found = {}
    for name, assumption in kinds.items():
        worst = worst_case([held], inputs=assumption)
        found[name] = {
            "bounded": worst.bounded,
            "stated_usd": None if worst.unbounded else _usd(worst.stated_pico),
            "tight_usd": None if worst.unbounded else _usd(worst.tight_pico),
            "text": worst.text(),
        }
    return found


def _window_json(status: WindowStatus) -> dict[str, Any]:
    s, w = status.state, status.worst
    return {
        "window": s.window.kind,
        "zone": s.window.zone,
        "start": s.window.start.isoformat(),
        "end": None if s.window.end is None else s.window.end.isoformat(),
        "limit_usd": _usd(s.limit_pico),
        "spent_usd": _usd(s.spent_pico),
        "held_usd": _usd(s.held_pico),
        "left_usd": _usd(s.left_pico),
        "open": s.open_count,
        "open_cap": s.open_cap,
        "unbounded": w.unbounded,
        "worst_case": {
            "kind": w.kind,
            "bounded": w.bounded,
            "stated_usd": _usd(w.stated_pico),
            "tight_usd": _usd(w.tight_pico),
            "text": w.text(),
        },
        "by_label": {
            label: {"requests": status.labels[label].requests, "usd": _usd(status.labels[label].pico)} for label in LABELS
        },
    }


def _budget_json(budget: BudgetStatus) -> dict[str, Any]:
    return {"budget": budget.name, "windows": [_window_json(status) for status in budget.windows]}


def _hold_json(hold: Hold) -> dict[str, Any]:
    return {
        "request_id": hold.request_id,
        "attempt": hold.attempt,
        "budgets": list(hold.budgets),
        "owner": hold.owner,
        "model": hold.model,
        "state": hold.state,
        "created": hold.created.isoformat(),
        "expires": hold.expires.isoformat(),
        "hold_usd": _usd(hold.hold_pico),
        "max_tokens": hold.reservation.limit_tokens,
    }


def _print_status(name: str, budgets: list[BudgetStatus], audit: Audit, unwritten: list[Hold]) -> None:
    console = _console()
    console.print(escape(name))
    table = _table("budget", "window", "limit", "spent", "held", "left", "open", "worst case", words=2)
    for budget in budgets:
        for status in budget.windows:
            s = status.state
            until = "" if s.window.end is None else f" until {s.window.end:%Y-%m-%d %H:%M} UTC"
            amounts = (money_text(pico) for pico in (s.limit_pico, s.spent_pico, s.held_pico, s.left_pico))
            worst = status.worst.text() if status.worst.open else "nothing open"
            expired = status.worst.open - s.open_count
            unwritten_words = f"{s.open_count:,}" + (f" and {expired:,} expired" if expired > 0 else "")
            table.add_row(escape(budget.name), s.window.kind + until, *amounts, unwritten_words, worst)
    console.print(table)
    for budget in budgets:
        for status in budget.windows:
            parts = [f"{label} {money_text(x.pico)} ({x.requests:,})" for label in LABELS if (x := status.labels[label]).requests]
            if parts:
                console.print(f"{escape(budget.name)}, {status.state.window.kind}: {', '.join(parts)}")
    if unwritten:
        oldest = unwritten[0]
        console.print(
            f"{audit.open:,} open, {audit.expired:,} expired; oldest: request {escape(oldest.request_id)}, attempt "
            f"{oldest.attempt}, by {escape(oldest.owner)} since {oldest.created:%Y-%m-%d %H:%M:%S} UTC, "
            f"{money_text(oldest.hold_pico)}"
        )
    console.print("counters equal their rows" if audit.agrees else "COUNTERS DIFFER FROM THEIR ROWS: rebuild the ledger")
    if audit.disputes:
        console.print(f"{audit.disputes:,} settlements were refused, since other figures were there first")


def _print_explanation(found: dict[str, Any]) -> None:
    console = _console()
    console.print(f"{escape(found['model'])} ({found['api']}), price {escape(found['price'])}")
    table = _table("", "tokens", "$ per million", "amount")
    table.add_column("", overflow="fold")
    lines = found["lines"]
    amounts = money_column([to_pico(line["usd"], "hold") for line in lines])
    for line, amount in zip(lines, amounts, strict=True):
        tokens = "" if line["tokens"] is None else f"{line['tokens']:,}"
        table.add_row(line["label"], tokens, line["usd_per_million"] or "", amount, escape(line["note"]))
    console.print(table)
    from horde_policy.views.budget_words import shape_sentence

    by_shape = shape_sentence(found["api"]) if found["api_from"] == "shape" else None
    if by_shape is not None:
        console.print(by_shape)
    if found["unseen"]:
        console.print("not in the input estimate: " + ", ".join(found["unseen"]))
    for text in dict.fromkeys(worst["text"] for worst in found["worst_case"].values()):  # unbounded either way is one line
        console.print("can cost beyond the hold: " + text)
    if found["overspend_per_limit"] is None:
        console.print("without a count of requests: no bound")
    else:
        ratio = Decimal(found["overspend_per_limit"]).quantize(Decimal("0.01"), ROUND_UP)
        console.print(f"without a count of requests: at most {ratio} times the limit over, for its output")
    if found.get("bound_without_count_usd") is not None:
        bound = money_text(to_pico(found["bound_without_count_usd"], "bound"))
        console.print(f"with that limit: at most {bound} over, for its output")


def _console() -> Console:
    """Return a console as wide as its terminal; into a file or a pipe wide enough for any table."""
    return Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else WIDE_CHARACTERS)


def _table(*names: str, words: int = 1) -> Table:
    """Return a table whose first columns are words and whose others are numbers; a narrow terminal folds, it never cuts."""
    table = Table(box=box.SIMPLE)
    for place, name in enumerate(names):
        table.add_column(name, justify="left" if place < words else "right", overflow="fold")
    return table


def _print_json(value: object) -> None:
    typer.echo(json.dumps(value, ensure_ascii=False))
