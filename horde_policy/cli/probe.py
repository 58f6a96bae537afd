"""``probe``: a dry run as the anonymous account; ours and the server's figure (issue 3)."""

import json
import os
from dataclasses import asdict
from typing import Annotated, Any

import typer

from horde_policy.board.measure import check_context, check_size
from horde_policy.board.probe import ProbePace, Prober, ProbeResult, probe_folder
from horde_policy.cli.measure_table import console, safe
from horde_policy.cli.settings_option import SetOption, SettingsOption, allowance_settings
from horde_policy.cli.sources_option import URL_VARIABLE, UrlOption, named_address
from horde_policy.clock import SystemClock
from horde_policy.errors import InputError, SourceError
from horde_policy.sources.catalogue import CONTACT_SETTING
from horde_policy.sources.dry_run import DryRunClient
from horde_policy.sources.horde import client_agent, fetch_snapshot
from horde_policy.units import DEFAULT_MAX_CONTEXT_TOKENS
from horde_policy.views.text import count_of

__all__ = ["register"]

ModelOption = Annotated[str, typer.Option("--model", metavar="M", help="The model asked for.")]
SizeOption = Annotated[int, typer.Option("--max-length", metavar="N", help="The size asked for, in output tokens.")]
ContextOption = Annotated[int, typer.Option("--max-context-length", metavar="N", help="The context asked for, in tokens.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]


def register(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("probe")(probe)


def probe(
    model: ModelOption,
    max_length: SizeOption,
    url: UrlOption = None,
    max_context_length: ContextOption = DEFAULT_MAX_CONTEXT_TOKENS,
    settings: SettingsOption = None,
    set_: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Ask a horde for a dry run as the anonymous account, once a model and minute at most; nothing is ever queued.

    The server's answer, the allowance that it states, ours, and why the two may differ.
    """
    check_size(max_length)
    check_context(max_context_length)
    in_force = allowance_settings(os.environ, settings, set_)
    setting, address = named_address(url, os.environ)
    if not address:
        raise InputError("--url", "", url, f"must be given, here or as {URL_VARIABLE} in the environment")
    clock = SystemClock()
    agent = client_agent(os.environ.get(CONTACT_SETTING))
    with DryRunClient(address, setting=setting, clock=clock, agent=agent) as client:
        prober = Prober(client, ProbePace(probe_folder(os.environ)), clock=clock)
        left_s = prober.wait_s(model)
        if left_s > 0:  # before anything else is asked of the horde
            raise InputError("probe", "", model, f"was probed less than a minute ago; again in {left_s:.0f} s")
        try:
            snapshot = fetch_snapshot(address, clock=clock, agent=agent, setting=setting)
        except SourceError:  # the probe's answer says why, if it gets one
            snapshot = None
        result = prober.probe(model, max_length, snapshot, in_force, context_tokens=max_context_length)
    if as_json:
        print(json.dumps(_document(result), indent=2, allow_nan=False))
    else:
        _print(result)


def _document(result: ProbeResult) -> dict[str, Any]:
    answer = asdict(result.answer) | {"at": result.answer.at.isoformat()}
    ours = result.ours
    told = None
    if ours is not None:
        measure = ours.measure
        told = {
            "outcome": ours.outcome,
            "allowance_tokens": ours.allowance_tokens,
            "allowance_range_tokens": [measure.allowance_at_high_tokens, measure.allowance_at_low_tokens],
            "state": measure.state,
            "message": ours.message,
            "age_s": ours.age_s,
        }
    return {
        "model": result.model,
        "max_length": result.max_length,
        "max_context_length": result.max_context_length,
        "answer": answer,
        "ours": told,
        "agrees": result.agrees,
        "reasons": list(result.reasons),
    }


_SAID = {None: "not comparable", True: "both say the same", False: "they differ"}


def _print(result: ProbeResult) -> None:
    out = console()
    answer, ours = result.answer, result.ours
    stated = "" if answer.stated_tokens is None else f", states {count_of(answer.stated_tokens, 'token')}"
    price = "" if answer.kudos is None else f", priced at {answer.kudos:g} kudos"
    out.print(safe(f"asked: {result.model}, {result.max_length:,} output tokens, context {result.max_context_length:,}"))
    out.print(safe(f"server: {answer.outcome} ({answer.status}{f', {answer.rc}' if answer.rc else ''}){stated}{price}"))
    if answer.message:
        out.print(safe(f"  {answer.message}"), soft_wrap=True)
    if ours is not None:
        allowed = "not known" if ours.allowance_tokens is None else count_of(ours.allowance_tokens, "token")
        out.print(safe(f"ours: {ours.outcome}, allowance {allowed}"))
        if ours.message:
            out.print(safe(f"  {ours.message}"), soft_wrap=True)
    out.print(safe(_SAID[result.agrees]))
    for reason in result.reasons:
        out.print(safe(f"- {reason}"), soft_wrap=True)
