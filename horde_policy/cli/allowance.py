"""``allowance``: one request that names all of the given models, at several sizes (A7, A9)."""

import difflib
import json
import os
from collections.abc import Iterable, Sequence
from typing import Annotated

import typer

from horde_policy.board.document import allowance_document
from horde_policy.board.measure import check_context, check_size, measure_pool
from horde_policy.board.pool import Fleet
from horde_policy.cli.measure_table import console, print_head, print_measures, print_problems, safe
from horde_policy.cli.settings_option import SetOption, SettingsOption, allowance_settings
from horde_policy.cli.sources_option import (
    AtOption,
    DemoOption,
    RecordedOption,
    SourceChoice,
    StoreOption,
    UrlOption,
    load_snapshot,
    say_unrecorded,
)
from horde_policy.clock import SystemClock
from horde_policy.errors import InputError, Problem
from horde_policy.units import DEFAULT_MAX_CONTEXT_TOKENS

__all__ = ["models_named", "register", "sizes_named"]

MOST_DIGITS = 9

CLOSE_NAMES = 3
"""So many names are offered for one that is not known."""

ModelOption = Annotated[
    list[str],
    typer.Option("--model", metavar="M[,M2]", help="The models the request names: separated by commas, or the option repeated."),
]
SizesOption = Annotated[
    list[str], typer.Option("--max-length", metavar="N[,N2]", help="The sizes: separated by commas, or the option repeated.")
]
ContextOption = Annotated[
    int, typer.Option("--max-context-length", metavar="N", help="The context asked, in tokens; never less than the size.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]


def register(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("allowance")(allowance)


def sizes_named(values: Iterable[str]) -> tuple[int, ...]:
    """Return the sizes that the option gives, each once, in the order given.

    Raises
    ------
    InputError
        One is not a whole number from 1 to 16384.

    Examples
    --------
    >>> sizes_named(["80,512", "80", "1024"])
    (80, 512, 1024)
    """
    sizes: dict[int, None] = {}
    for text in (part.strip() for value in values for part in value.split(",")):
        # only a few plain digits: int() would also take signs, underscores and other scripts' digits, and fail on thousands
        digits = text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS
        sizes[check_size(int(text) if digits else text)] = None
    return tuple(sizes)


def models_named(values: Iterable[str], known: Iterable[str]) -> tuple[str, ...]:
    """Return the models that the option names, each once, in the order given.

    A value is split at its commas; where several parts together are the name of a known model, which may itself hold commas,
    they stay together, the longest such name first.

    Raises
    ------
    InputError
        A name is empty.

    Examples
    --------
    >>> models_named(["a,b", "c"], known=["a", "b"])
    ('a', 'b', 'c')
    >>> models_named(["a,b,c"], known=["a,b", "c"])
    ('a,b', 'c')
    """
    names = frozenset(known)
    found: dict[str, None] = {}
    for value in values:
        parts = value.split(",")
        start = 0
        while start < len(parts):
            ends = range(len(parts), start + 1, -1)
            end = next((end for end in ends if ",".join(parts[start:end]).strip() in names), start + 1)
            name = ",".join(parts[start:end]).strip()
            if not name:
                raise InputError("--model", "", value, "must not hold an empty name")
            found[name] = None
            start = end
    return tuple(found)


def unknown_models(models: Sequence[str], known: Sequence[str]) -> tuple[Problem, ...]:
    """Return a note on each model that the source neither lists nor has a worker for, with names close to it.

    >>> unknown_models(["stheno"], ["koboldcpp/L3-8B-Stheno-v3.2"])[0].text
    'is neither listed nor served by any worker of the list; close to it: koboldcpp/L3-8B-Stheno-v3.2'
    """
    notes = []
    for model in models:
        if model not in known:
            holding = [name for name in known if model.casefold() in name.casefold()]
            close = list(dict.fromkeys([*holding, *difflib.get_close_matches(model, known, n=CLOSE_NAMES)]))[:CLOSE_NAMES]
            hint = f"; close to it: {', '.join(close)}" if close else ""
            text = f"is neither listed nor served by any worker of the list{hint}"
            notes.append(Problem("unknown_model", model, text, "note"))
    return tuple(notes)


def allowance(
    model: ModelOption,
    max_length: SizesOption,
    url: UrlOption = None,
    recorded: RecordedOption = None,
    store: StoreOption = None,
    at: AtOption = None,
    demo: DemoOption = False,
    max_context_length: ContextOption = DEFAULT_MAX_CONTEXT_TOKENS,
    settings: SettingsOption = None,
    set_: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """One request that names all of the models, at several sizes: a size is a pool of its own, and so an allowance of its own.

    A model that the source does not know is no error, as the server accepts it too: nobody serves it.
    """
    sizes = sizes_named(max_length)
    check_context(max_context_length)
    in_force = allowance_settings(os.environ, settings, set_)
    models_named(model, ())
    choice = SourceChoice(url=url, recorded=recorded, store=store, at=at, demo=demo)
    look = load_snapshot(choice, os.environ, SystemClock())
    fleet = Fleet.of(look, in_force)
    models = models_named(model, fleet.names)
    problems = unknown_models(models, fleet.names)
    pool = fleet.pool(models, max_context_length)
    measures = [measure_pool(fleet, pool, size) for size in sizes]
    if as_json:
        say_unrecorded(look)
        print(json.dumps(allowance_document(look, models, measures, problems), indent=2, allow_nan=False))
        return
    out = console()
    print_head(out, look, f"asked: {', '.join(models)}; context {max_context_length:,}, or the size where that is more")
    print_measures(out, measures, "size", [f"{size:,}" for size in sizes])
    notes = dict.fromkeys(f"{m.max_length:,}: {note.text}" for m in measures for note in m.notes)
    for note in notes:
        out.print(safe(note), soft_wrap=True)
    print_problems(out, (*look.problems, *problems))
