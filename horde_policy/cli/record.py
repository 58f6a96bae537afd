"""``record``: poll a horde, or collect the metrics of a Prometheus, into a history until stopped (issues 3 and 4)."""

import os
import secrets
import socket
import sys
import time
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer

from horde_policy.board.measure import check_context, check_size
from horde_policy.cli.settings_option import SetOption, SettingsOption, allowance_settings
from horde_policy.cli.sources_option import URL_VARIABLE, UrlOption, named_address
from horde_policy.cli.stopping import stopped_by_signals
from horde_policy.clock import SystemClock
from horde_policy.errors import ConfigError, InputError
from horde_policy.sources.catalogue import CONTACT_SETTING
from horde_policy.sources.horde import HordeClient, LiveSource, client_agent
from horde_policy.sources.prometheus import TENANT_SETTING, TOKEN_SETTING, PrometheusClient
from horde_policy.units import DEFAULT_MAX_CONTEXT_TOKENS, DEFAULT_MAX_LENGTH_TOKENS
from horde_policy.views.text import visible

__all__ = ["KEEP_VARIABLE", "STORE_VARIABLE", "WEBHOOK_VARIABLE", "register"]

STORE_VARIABLE = "HORDE_POLICY_HISTORY"
WEBHOOK_VARIABLE = "HORDE_POLICY_WEBHOOK"
KEEP_VARIABLE = "HORDE_POLICY_HISTORY_KEEP_DAYS"
SHORTEST_INTERVAL_S = 10.0
POLL_EVERY_S = 30.0
COLLECT_EVERY_S = 300.0

StoreOption = Annotated[
    str | None,
    typer.Option("--store", metavar="DB", help=f"An SQLite file or a postgresql:// URL; else {STORE_VARIABLE}."),
]
IntervalOption = Annotated[
    float | None,
    typer.Option("--interval", metavar="S", help="Seconds between polls, 10 at least; 30 for a horde, 300 for a Prometheus."),
]
PrometheusOption = Annotated[
    str | None,
    typer.Option(
        "--prometheus",
        metavar="URL",
        help="Collect the three series of the allowance from a Prometheus or Mimir, and no horde; its token is taken from "
        f"{TOKEN_SETTING} in the environment.",
    ),
]
TenantOption = Annotated[
    str | None, typer.Option("--tenant", metavar="ID", help=f"Sent as X-Scope-OrgID, for Mimir; else {TENANT_SETTING}.")
]
MappingOption = Annotated[
    Path | None, typer.Option("--mapping", metavar="FILE", help="What the metrics do not say of themselves (TOML).")
]
PortOption = Annotated[
    int | None, typer.Option("--metrics-port", metavar="P", help="Serve Prometheus metrics on this port; 0 takes a free one.")
]
AddressOption = Annotated[str, typer.Option("--metrics-address", metavar="ADDRESS", help="Serve them on this address.")]
WebhookOption = Annotated[
    str | None,
    typer.Option("--webhook", metavar="URL", help=f"POST each change of an alert there; else {WEBHOOK_VARIABLE}."),
]
KeepOption = Annotated[
    float | None, typer.Option("--keep-days", metavar="D", help=f"Prune what is older; else {KEEP_VARIABLE}, else for ever.")
]
SizeOption = Annotated[int, typer.Option("--max-length", metavar="N", help="The size that alerts and metrics are for.")]
ContextOption = Annotated[int, typer.Option("--max-context-length", metavar="N", help="The context that they are for.")]


def register(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("record")(record)


def record(
    url: UrlOption = None,
    store: StoreOption = None,
    prometheus: PrometheusOption = None,
    tenant: TenantOption = None,
    mapping: MappingOption = None,
    interval: IntervalOption = None,
    metrics_port: PortOption = None,
    metrics_address: AddressOption = "127.0.0.1",
    webhook: WebhookOption = None,
    keep_days: KeepOption = None,
    max_length: SizeOption = DEFAULT_MAX_LENGTH_TOKENS,
    max_context_length: ContextOption = DEFAULT_MAX_CONTEXT_TOKENS,
    settings: SettingsOption = None,
    set_: SetOption = None,
) -> None:
    """Poll a horde and store what changed, until interrupted: what is away, full or locked is said and survived.

    The history can be read meanwhile. Killed at any instant it loses at most the poll in flight. With --prometheus it keeps the
    three series of the allowance instead, and asks for what it missed.
    """
    kept = _kept_days(keep_days, os.environ)
    named_store = _named(store, "--store", STORE_VARIABLE, os.environ)
    if prometheus is not None:
        if url is not None:
            raise InputError("--prometheus", "", prometheus, "cannot be given with --url: run one recorder for each")
        if metrics_port is not None or webhook is not None:
            raise InputError("--prometheus", "", prometheus, "has no gauges and alerts of its own: --metrics-port and --webhook")
        _collect(prometheus, tenant, mapping, named_store, _interval(interval, COLLECT_EVERY_S), kept)
        return
    # read here and not above: only this command needs all of it, and a command should start fast
    from horde_policy.history.recorder import RecorderState
    from horde_policy.history.service import RecordingPlan, RecordingService
    from horde_policy.history.upkeep import Retention

    plan = RecordingPlan(
        store=named_store,
        interval_s=_interval(interval, POLL_EVERY_S),
        settings=allowance_settings(os.environ, settings, set_),
        max_length=check_size(max_length),
        context_tokens=check_context(max_context_length),
        metrics_port=metrics_port,
        metrics_address=metrics_address,
        webhook=webhook or os.environ.get(WEBHOOK_VARIABLE, "").strip() or None,
        retention=None if kept is None else Retention(timedelta(days=kept)),
    )
    clock = SystemClock()
    setting, address = named_address(url, os.environ)
    if not address:
        raise InputError("--url", "", url, f"must be given, here or as {URL_VARIABLE} in the environment")

    def told(state: RecorderState) -> None:
        reason = f": {state.text}" if state.text else ""
        _say(f"{clock.now():%Y-%m-%d %H:%M:%S} UTC {state.state}{reason}")

    def told_of_webhook(sentence: str) -> None:
        _say(f"{clock.now():%Y-%m-%d %H:%M:%S} UTC {sentence}")

    with HordeClient(address, setting=setting, clock=clock, agent=client_agent(os.environ.get(CONTACT_SETTING))) as client:
        owner = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
        source = LiveSource(client)
        service = RecordingService(
            source,
            plan,
            clock=clock,
            monotonic=time.monotonic,
            owner=owner,
            told=told,
            told_of_webhook=told_of_webhook,
        )
        _say(f"recording {client.name} into {service.recorder.store.name} every {service.recorder.interval_s:g} s")
        if service.metrics_port is not None:
            _say(f"metrics at http://{metrics_address}:{service.metrics_port}/metrics")
        service.run(stopped_by_signals())
    _say("stopped")


def _collect(url: str, tenant: str | None, mapping: Path | None, store: str, every_s: float, kept_days: float | None) -> None:
    """Collect from a Prometheus until stopped."""
    from horde_policy.history.collecting import Collector, CollectorState
    from horde_policy.history.store import HistoryStore
    from horde_policy.imports import load_mapping

    clock = SystemClock()

    def told(state: CollectorState) -> None:
        reason = f": {state.text}" if state.text else ""
        upto = "" if state.collected_to is None else f", up to {state.collected_to:%Y-%m-%d %H:%M:%S} UTC"
        _say(f"{clock.now():%Y-%m-%d %H:%M:%S} UTC {state.state}{reason}{upto}")
        for problem in state.problems:
            _say(f"{problem.level}: {problem.subject}: {problem.text}")

    given = {name: os.environ.get(name, "").strip() or None for name in (TENANT_SETTING, TOKEN_SETTING)}
    asked = PrometheusClient(
        url, clock=clock, tenant=tenant or given[TENANT_SETTING], token=given[TOKEN_SETTING], setting="--prometheus"
    )
    keep = None if kept_days is None else timedelta(days=kept_days)
    said = None if mapping is None else load_mapping(mapping)
    with asked as client:
        opened = HistoryStore(store)
        try:
            collector = Collector(client, opened, clock=clock, mapping=said, every_s=every_s, keep=keep)
            _say(f"collecting the metrics of {client.name} into {opened.name} every {every_s:g} s")
            collector.run(stopped_by_signals(), told=told)
        finally:
            opened.close()
    _say("stopped")


def _interval(given: float | None, usual: float) -> float:
    interval = usual if given is None else given
    if not SHORTEST_INTERVAL_S <= interval <= 86_400:
        raise InputError("--interval", "", interval, f"must be from {SHORTEST_INTERVAL_S:g} to 86400 seconds")
    return interval


def _named(given: str | None, option: str, variable: str, environment: Mapping[str, str]) -> str:
    named = given if given is not None else environment.get(variable, "").strip()
    if not named:
        raise InputError(option, "", given, f"must be given, here or as {variable} in the environment")
    return named


def _kept_days(given: float | None, environment: Mapping[str, str]) -> float | None:
    text = environment.get(KEEP_VARIABLE, "").strip()
    if given is None and not text:
        return None
    try:
        days = given if given is not None else float(text)
    except ValueError:
        raise ConfigError(KEEP_VARIABLE, text, "must be a number of days") from None
    if not 0 < days <= 36_500:
        raise ConfigError(KEEP_VARIABLE if given is None else "--keep-days", days, "must be above 0 and at most 36500 days")
    return days


def _say(text: str) -> None:
    print(visible(text), file=sys.stderr, flush=True)
