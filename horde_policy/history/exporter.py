"""The latest board as Prometheus metrics: what is not known has no sample, and a model that is gone has none either.

Nothing is kept between scrapes: each reads the latest snapshot. Once that is older than its age limit the models' samples end,
and only its age and the recorder's state go on. Names of models are made safe and unique; see :func:`label_of`.
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import get_args
from wsgiref.simple_server import WSGIServer

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector

from horde_policy.board.rows import Board, Row, make_board
from horde_policy.board.states import STATES
from horde_policy.clock import Clock
from horde_policy.errors import InputError
from horde_policy.frames.snapshot import Snapshot
from horde_policy.history.labels import digest_of
from horde_policy.history.recorder import RecorderState, State
from horde_policy.settings import AllowanceSettings
from horde_policy.units import DEFAULT_MAX_CONTEXT_TOKENS, DEFAULT_MAX_LENGTH_TOKENS

__all__ = ["BoardCollector", "MetricsServer", "label_of", "serve_metrics"]

LONGEST_LABEL = 200
MOST_MODELS = 2_000
PREFIX = "horde_policy"


def label_of(name: str) -> str:
    r"""Return a model's name as a label's value.

    Control characters, of which a NUL would end a scrape, become U+FFFD, and a long name is cut. A name that was changed ends
    with a part of its SHA-256, so that two never become one.

    >>> label_of('koboldcpp/"odd" name')
    'koboldcpp/"odd" name'
    >>> label_of("two lines\n")
    'two lines\ufffd#1d167d5d'
    """
    safe = "".join("\ufffd" if ord(character) < 32 or 127 <= ord(character) < 160 else character for character in name)
    if safe == name and len(name) <= LONGEST_LABEL:
        return name
    return f"{safe[:LONGEST_LABEL]}#{digest_of(name)[:8]}"


@dataclass(frozen=True, slots=True)
class _Gauge:
    """A gauge of a model: its name, its help, and where its value comes from (null: no sample)."""

    name: str
    text: str
    value: Callable[[Row], float | None]


def _wait(row: Row, scenario: str) -> float | None:
    waits = row.measure.waits
    return None if waits is None else {"low": waits.low_s, "named": waits.named_s, "high": waits.high_s}[scenario]


MODEL_GAUGES = (
    _Gauge(
        "model_allowance_tokens",
        "Free output allowance by the listed queue; the floor without an eligible worker.",
        lambda row: row.measure.allowance_tokens,
    ),
    _Gauge(
        "model_largest_free_request_tokens",
        "Largest request that some worker takes and that is free at that size.",
        lambda row: row.measure.largest_free_request_tokens,
    ),
    _Gauge(
        "model_eligible_workers",
        "Online workers outside maintenance that take the requested size.",
        lambda row: row.measure.eligible_workers,
    ),
    _Gauge(
        "model_combined_speed_tokens_per_second",
        "Combined speed of the eligible workers, new ones at the assumed speed.",
        lambda row: row.measure.speed_tok_per_s,
    ),
    _Gauge("model_queued_tokens", "Output tokens that the list names as queued for it.", lambda row: row.measure.queued_tokens),
)


class BoardCollector(Collector):
    """Gives the metrics of the latest snapshot at each scrape.

    Parameters
    ----------
    look
        Gives the latest snapshot (null: none yet) and how the recorder stands; called from the server's threads.
    settings, max_length, context_tokens
        What the board is read at.
    clock
        Tells the age.
    """

    def __init__(
        self,
        look: Callable[[], tuple[Snapshot | None, RecorderState]],
        settings: AllowanceSettings,
        *,
        clock: Clock,
        max_length: int = DEFAULT_MAX_LENGTH_TOKENS,
        context_tokens: int = DEFAULT_MAX_CONTEXT_TOKENS,
    ) -> None:
        self._look = look
        self._settings = settings
        self._clock = clock
        self._max_length = max_length
        self._context_tokens = context_tokens
        self._board: Board | None = None
        self._lock = threading.Lock()

    def _read(self, snapshot: Snapshot) -> Board:
        """Return the board of a snapshot, read once however often it is scraped."""
        with self._lock:
            if self._board is None or self._board.snapshot is not snapshot:
                self._board = make_board(
                    snapshot,
                    self._settings,
                    max_length=self._max_length,
                    context_tokens=self._context_tokens,
                    strip_sizes=(),
                )
            return self._board

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics."""
        snapshot, standing = self._look()
        yield from _recorder_metrics(standing)
        yield _one("requested_size_tokens", "Output size that the models' figures are for.", self._max_length)
        yield _one("allowance_floor_tokens", "Setting: the allowance at a long wait.", self._settings.floor_tokens)
        yield _one("allowance_ceiling_tokens", "Setting: the allowance at a short wait.", self._settings.ceiling_tokens)
        if snapshot is None:
            return
        age_s = (self._clock.now() - snapshot.figures_at).total_seconds()
        info = {"source": label_of(snapshot.source), "synthetic": str(snapshot.synthetic).lower()}
        yield InfoMetricFamily(f"{PREFIX}_source", "The horde that is recorded, and whether its data are made up.", info)
        yield _one(
            "snapshot_age_seconds",
            "Age of the workers and the list of models of the latest snapshot, whichever is older.",
            max(0.0, age_s),
        )
        yield _one("snapshot_age_limit_seconds", "Older than this a snapshot is stale.", snapshot.age_limit_s)
        if age_s <= snapshot.age_limit_s:
            yield from _model_metrics(self._read(snapshot).rows)


def _one(name: str, text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"{PREFIX}_{name}", text, value=value)


def _recorder_metrics(standing: RecorderState) -> Iterator[Metric]:
    state = GaugeMetricFamily(f"{PREFIX}_recorder_state", "1 for the state that the recorder is in.", labels=["state"])
    for name in get_args(State):
        state.add_metric([name], float(name == standing.state))
    yield state
    yield CounterMetricFamily(f"{PREFIX}_recorder_polls", "Polls that this recorder stored.", value=standing.polls)
    if standing.last_stored is not None:
        text = "When the last poll was stored, in seconds since 1970."
        yield _one("recorder_last_poll_timestamp_seconds", text, standing.last_stored.timestamp())


def _model_metrics(rows: Iterable[Row]) -> Iterator[Metric]:
    shown = [row for row in rows if row.model is not None]
    left_out = max(0, len(shown) - MOST_MODELS)
    labelled = [(label_of(row.model or ""), row) for row in shown[:MOST_MODELS]]
    yield _one("models_left_out", f"Models beyond the first {MOST_MODELS}, which have no samples.", left_out)
    for gauge in MODEL_GAUGES:
        family = GaugeMetricFamily(f"{PREFIX}_{gauge.name}", gauge.text, labels=["model"])
        for label, row in labelled:
            value = gauge.value(row)
            if value is not None:
                family.add_metric([label], float(value))
        yield family
    text = "Estimated wait: low (nothing queued could go there), named (the listed queue), high (the most it may stand for)."
    waits = GaugeMetricFamily(f"{PREFIX}_model_estimated_wait_seconds", text, labels=["model", "scenario"])
    states = GaugeMetricFamily(f"{PREFIX}_model_state", "1 for the state that the model is in.", labels=["model", "state"])
    for label, row in labelled:
        for scenario in ("low", "named", "high"):
            wait_s = _wait(row, scenario)
            if wait_s is not None:
                waits.add_metric([label, scenario], wait_s)
        for name in STATES:
            states.add_metric([label, name], float(name == row.measure.state))
    yield waits
    yield states


@dataclass(frozen=True, slots=True)
class MetricsServer:
    """A running server of metrics."""

    server: WSGIServer
    thread: threading.Thread

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.server.server_address[1])

    def stop(self) -> None:
        """End it."""
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


def serve_metrics(collector: Collector, port: int, address: str = "127.0.0.1") -> MetricsServer:
    """Serve a collector's metrics, and nothing else, over HTTP; port 0 takes a free one.

    Raises
    ------
    InputError
        The address or port cannot be used.
    """
    registry = CollectorRegistry(auto_describe=False)
    registry.register(collector)
    try:
        server, thread = start_http_server(port, addr=address, registry=registry)
    except (OSError, OverflowError) as error:
        where = f"{address}:{port}"
        raise InputError(
            "--metrics-port", "", where, f"cannot be served on: {getattr(error, 'strerror', None) or error}"
        ) from error
    return MetricsServer(server, thread)
