"""The Workers page's words and rows: who carries what, what hangs on one worker, who was there and is gone."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import polars as pl

from horde_policy.board.moves import SinglePoint
from horde_policy.board.pool import largest_size_tokens
from horde_policy.board.rows import Board
from horde_policy.policy.worker import Worker, available, counted_speed_tok_per_s, counted_threads, is_measured, standing
from horde_policy.views import grid
from horde_policy.views.overview import SPEED_OF_ALL, closed_text
from horde_policy.views.text import (
    NONE_FREE,
    NOT_REPORTED,
    as_listed,
    count,
    instant,
    largest_free,
    names_text,
    names_told,
    program_text,
    ratio,
    shortened,
    shortened_name,
    speed,
    visible,
)
from horde_policy.views.tiles import tile
from horde_policy.views.words import STANDINGS, gloss

__all__ = [
    "GONE_COLUMNS",
    "POINT_COLUMNS",
    "fleet_tiles",
    "gone_rows",
    "headline",
    "point_rows",
    "shown_workers",
    "with_sizes",
    "worker_columns",
    "worker_rows",
]


def headline(board: Board, points: Sequence[SinglePoint]) -> str:
    """Return in one sentence how many workers carry the horde, and what hangs on one of them."""
    pulse = board.pulse
    if not pulse.listed_workers:
        return "The list has no worker"
    carried = "no model hangs on a single one"
    if points:
        workers = len({point.worker.worker_id for point in points})
        models = "1 model hangs" if len(points) == 1 else f"{count(len(points))} models hang"
        carried = f"{models} on one worker each ({count(workers)} worker{'s' if workers != 1 else ''})"
    some = f"{count(pulse.open_workers)} of {count(pulse.listed_workers)} workers take requests"
    modelless = _modelless(board)
    return f"{some}{f', {modelless}' if modelless else ''}; {carried}"


def _modelless(board: Board) -> str:
    """Return how many of the workers that take requests serve no model, or do not report theirs; empty where none."""
    found = Counter(standing(worker) for worker in board.fleet.open_workers)
    parts = [
        f"{count(found[name])} of them {'serves' if found[name] == 1 else 'serve'} no model"
        if name == "idle"
        else f"{count(found[name])} of them {'does' if found[name] == 1 else 'do'} not report models"
        for name in ("idle", "not known")
        if found[name]
    ]
    return ", ".join(parts)


def fleet_tiles(board: Board, points: Sequence[SinglePoint]) -> list[dict[str, object]]:
    """Return the row of figures."""
    pulse = board.pulse
    fastest = max((counted_speed_tok_per_s(worker, board.settings) for worker in board.fleet.open_workers), default=None)
    share = None if fastest is None or not pulse.speed_tok_per_s else fastest / pulse.speed_tok_per_s
    told, unsaid = _told(board)
    besides = closed_text(pulse, besides=("maintenance",))
    modelless = _modelless(board)
    return [
        tile(
            "Workers",
            count(pulse.open_workers),
            sub=f"of {count(pulse.listed_workers)} listed" + (f"; {modelless}" if modelless else ""),
            help="Online, outside maintenance, owner not flagged. " + gloss("eligible_worker"),
        ),
        tile(
            "In maintenance",
            told,
            sub="; ".join(part for part in (unsaid, f"besides: {besides}" if besides else "") if part),
            help="They take no work of others.",
        ),
        tile(
            "Speed of all",
            speed(pulse.speed_tok_per_s),
            unit="tok/s",
            sub=f"{count(pulse.open_workers)} workers",
            help=SPEED_OF_ALL,
        ),
        tile("At assumed speed", count(pulse.unmeasured_workers), unit="workers", help=gloss("assumed_speed")),
        tile("The fastest alone", ratio(share), sub="of the speed of all"),
        tile(
            "Single points of failure",
            count(len(points)),
            unit="models",
            help=f"Models that exactly one eligible worker carries at {count(board.max_length)} tokens.",
        ),
    ]


def _told(board: Board) -> tuple[str, str]:
    """Return the number of workers in maintenance as figure and, where some do not report it, of how many that is told."""
    told = [worker.maintenance for worker in board.fleet.workers if worker.maintenance is not None]
    if not told and board.fleet.workers:
        return NOT_REPORTED, "not reported"
    silent = len(board.fleet.workers) - len(told)
    verb = "does" if silent == 1 else "do"
    return count(sum(told)), f"{count(silent)} {verb} not report it" if silent else ""


# --- who carries what ---------------------------------------------------------------------------------------------------


def shown_workers(workers: Sequence[Worker], find: str, settings: Any) -> list[Worker]:
    """Return the workers in whose name, agent or models every word stands: those that serve first, then by speed, then by id."""
    words = find.casefold().split()

    def told(worker: Worker) -> str:
        return " ".join([worker.name or "", worker.bridge_agent or "", *(worker.models or ())]).casefold()

    kept = [worker for worker in workers if all(word in told(worker) for word in words)]
    return sorted(kept, key=lambda w: (not available(w), -counted_speed_tok_per_s(w, settings), w.worker_id))


def worker_columns(*, with_history: bool) -> list[grid.Column]:
    """Return the columns of the workers' table; presence only where a history tells it."""
    past = [
        grid.Column(key="present", label="There", unit="of the range", right=True, help="Of the polls of the range."),
    ]
    return [
        grid.Column(key="worker", label="Worker", kind="name", brief=""),
        grid.Column(key="standing", label="State", brief=""),
        grid.Column(key="speed", label="Speed", unit="tok/s", right=True, help=gloss("assumed_speed"), brief="tok/s"),
        grid.Column(
            key="size",
            label="Takes up to",
            unit="tokens",
            right=True,
            help="Its largest size at the context asked for.",
            brief="up to",
        ),
        grid.Column(key="context", label="Context", unit="tokens", right=True),
        grid.Column(key="threads", label="Threads", right=True),
        grid.Column(key="models", label="Models", wide=True, wrap=True),
        grid.Column(key="alone", label="Carries alone", unit="models", right=True),
        *(past if with_history else []),
    ]


def worker_rows(
    workers: Sequence[Worker],
    board: Board,
    points: Sequence[SinglePoint],
    past: Mapping[str, Mapping[str, Any]],
    link: Callable[..., str],
) -> list[grid.Row]:
    """Return a row a worker; ``past`` has its row of the history by id, ``link`` makes the query of a model page."""
    alone: dict[str, list[str]] = {}
    for point in points:
        alone.setdefault(point.worker.worker_id, []).append(point.model)
    return [
        grid.Row(
            id=f"worker {worker.worker_id}",
            cells=_cells(worker, board, alone.get(worker.worker_id, []), past.get(worker.worker_id)),
            query=link(models=worker.models[:20]) if worker.models else None,
            out=not available(worker),
        )
        for worker in workers
    ]


def _cells(worker: Worker, board: Board, alone: Sequence[str], past: Mapping[str, Any] | None) -> dict[str, grid.Cell]:
    models = worker.models or ()
    agent = visible(worker.bridge_agent or "")
    return {
        "worker": grid.name_cell(worker.name or "(no name)", sub=program_text(agent), whole=shortened(agent, 300)),
        "standing": _standing_cell(worker),
        "speed": {
            "text": speed(counted_speed_tok_per_s(worker, board.settings)),
            "sub": _span_text(past, ("slowest_tok_per_s", "fastest_tok_per_s"), speed) if is_measured(worker) else "assumed",
        },
        "size": {
            **_size_text(worker, board.context_tokens),
            "sub": _span_text(past, ("smallest_tokens", "largest_tokens"), count),
        },
        "context": count(worker.max_context_length),
        "threads": count(counted_threads(worker)),
        "models": {
            "text": names_text(models, 90) or ("not reported" if worker.models is None else "none"),
            "names": names_told(models, 90),
            "title": names_text(models, 2_000),
        },
        "alone": {"text": count(len(alone)), "title": names_text(alone, 1_000)},
        "present": _present_cell(past),
    }


def _size_text(worker: Worker, context_tokens: int) -> dict[str, str]:
    """Return the largest size that a worker takes at this context; one that takes none is no gap in what is reported."""
    largest = largest_size_tokens(worker, context_tokens)
    known = worker.max_length is not None and worker.max_context_length is not None
    text = largest_free(largest, known=known)
    return (
        {"text": text, "title": f"It takes no context of {count(context_tokens)} tokens."}
        if text == NONE_FREE
        else {"text": text}
    )


def with_sizes(over_range: pl.DataFrame, periods: pl.DataFrame) -> pl.DataFrame:
    """Return the workers of a range with the smallest and the largest size that each declared in it.

    Parameters
    ----------
    over_range, periods
        Frames ``WORKER_ROWS`` and ``PERIOD_ROWS`` of the history.

    Examples
    --------
    >>> periods = pl.DataFrame({"worker_id": ["a", "a"], "max_length": [512, 256]})
    >>> with_sizes(pl.DataFrame({"worker_id": ["a", "b"]}), periods).rows()
    [('a', 256, 512), ('b', None, None)]
    """
    size = pl.col("max_length")
    sizes = periods.group_by("worker_id").agg(smallest_tokens=size.min(), largest_tokens=size.max())
    return over_range.join(sizes, on="worker_id", how="left", maintain_order="left")


def _span_text(past: Mapping[str, Any] | None, ends: tuple[str, str], written: Callable[[Any], str]) -> str:
    """Return what a worker's figure went between over the range; nothing where it stayed the same as far as it is shown.

    >>> _span_text({"a": 256, "b": 512}, ("a", "b"), count), _span_text({"a": 1, "b": 1}, ("a", "b"), count)
    ('256 to 512 over the range', '')
    """
    least, most = (None, None) if past is None else (past[ends[0]], past[ends[1]])
    if least is None or most is None or written(least) == written(most):
        return ""
    return f"{written(least)} to {written(most)} over the range"


def _standing_cell(worker: Worker) -> grid.Cell:
    """Return how a worker stands, and what of that is not reported and so does not exclude it."""
    stands = standing(worker)
    parts = (("online", worker.online), ("maintenance", worker.maintenance), ("flagged", worker.flagged))
    silent = [name for name, value in parts if value is None]
    text = STANDINGS[stands]
    return {"text": text, "sub": f"{', '.join(silent)} not reported"} if silent and stands in ("open", "idle") else text


def _present_cell(past: Mapping[str, Any] | None) -> grid.Cell:
    if past is None:
        return ""
    return {"text": ratio(past["present_ratio"]), "title": f"First seen in the range: {instant(past['first_seen'])}"}


# --- what hangs on one worker -------------------------------------------------------------------------------------------

POINT_COLUMNS: Final = [
    grid.Column(key="model", label="Model", kind="name", ends=True),
    grid.Column(key="worker", label="Its only eligible worker"),
    grid.Column(key="speed", label="Speed", unit="tok/s", right=True),
    grid.Column(key="now", label="Now", kind="allowance", unit="tokens free", wide=True),
    grid.Column(key="without", label="Without it", kind="allowance", unit="tokens free", wide=True),
    grid.Column(key="queued", label="Left waiting", unit="tokens", right=True, help=gloss("queued_tokens")),
]


def point_rows(points: Sequence[SinglePoint], ceiling_tokens: int, link: Callable[..., str]) -> list[grid.Row]:
    """Return a row a model that one worker carries, by name, with what its allowance becomes without that worker."""

    def allowance(measured: Any) -> grid.Cell:
        return grid.allowance_cell(
            measured.state,
            allowance=measured.allowance_tokens,
            at_high=measured.allowance_at_high_tokens,
            ceiling=ceiling_tokens,
        )

    return [
        grid.Row(
            id=f"point {point.model}",
            cells={
                "model": grid.name_cell(point.model),
                "worker": {"text": shortened_name(visible(point.worker.name or "(no name)"), 40)},
                "speed": speed(point.now.speed_tok_per_s),
                "now": allowance(point.now),
                "without": allowance(point.without),
                "queued": count(point.now.queued_tokens),
            },
            query=link(models=(point.model,)),
        )
        for point in sorted(points, key=lambda point: as_listed(point.model))
    ]


# --- gone since -----------------------------------------------------------------------------------------------------------

GONE_COLUMNS: Final = [
    grid.Column(key="worker", label="Worker", kind="name"),
    grid.Column(key="gone", label="Gone since", right=True),
    grid.Column(key="present", label="There", unit="of the range", right=True),
    grid.Column(key="speed", label="Speed", unit="tok/s, mean", right=True),
    grid.Column(
        key="size", label="Took up to", unit="tokens", right=True, help="The largest size that it declared in the range."
    ),
    grid.Column(key="models", label="Models", wide=True, wrap=True),
]


def gone_rows(over_range: pl.DataFrame) -> list[grid.Row]:
    """Return a row a worker of :func:`with_sizes` that is gone at the end of the range, the latest first."""
    gone = over_range.filter(pl.col("gone_since").is_not_null()).sort("gone_since", "worker_id", descending=[True, False])
    return [
        grid.Row(
            id=f"gone {row['worker_id']}",
            cells={
                "worker": grid.name_cell(row["name"] or "(no name)"),
                "gone": instant(row["gone_since"]),
                "present": ratio(row["present_ratio"]),
                "speed": {
                    "text": speed(row["speed_tok_per_s"]),
                    "sub": _span_text(row, ("slowest_tok_per_s", "fastest_tok_per_s"), speed),
                },
                "size": {
                    "text": count(row["largest_tokens"]),
                    "sub": _span_text(row, ("smallest_tokens", "largest_tokens"), count),
                },
                "models": {"text": names_text(row["models"] or [], 120), "names": names_told(row["models"] or [], 120)},
            },
        )
        for row in gone.iter_rows(named=True)
    ]
