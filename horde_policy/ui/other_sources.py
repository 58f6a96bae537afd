"""Finds what figures come from besides hordes, and how it stands; nothing is asked, and no more is read than names and times."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from horde_policy.sources.prometheus import URL_SETTING
from horde_policy.ui import history, review_library, review_live
from horde_policy.ui.budget_ledger import LEDGER_SETTING
from horde_policy.ui.sweep_desk import SWEEPS_SETTING, sweeps_folder
from horde_policy.views.other_sources import OtherSource

__all__ = ["other_sources"]

REVIEW = "Week, Decisions, Waits"


def other_sources(now: datetime) -> tuple[OtherSource, ...]:
    """Return every source that is no horde: exports, a Prometheus, the history, the ledger, the sweeps that are kept."""
    return (*_exports(), *_prometheus(), _history(now), _ledger(), _sweeps())


def _exports() -> Iterator[OtherSource]:
    last = {kept.name: kept.last for kept in history.kept_metrics()}
    for entry in review_library.entries().values():
        if entry.kind == "live":
            continue
        kind = {"demo": "exports, synthetic", "folder": "exports", "kept": "exports in the history"}[entry.kind]
        at = last.get(entry.kept) if entry.path is None or entry.kind == "demo" else _written(entry.path)
        state = "bundled" if entry.kind == "demo" else "ready"
        yield OtherSource(name=entry.title, kind=kind, page=REVIEW, state=state, at=at)
    for name in review_library.missing_folders():
        trouble = f"It holds no export; {review_library.EXPORTS_SETTING} names it."
        yield OtherSource(name=Path(name).name, kind="exports", page=REVIEW, state="empty", trouble=trouble, wrong=True)


def _prometheus() -> Iterator[OtherSource]:
    name, problem = review_live.server_name(), review_live.server_problem()
    if problem is not None:
        yield OtherSource(name="Prometheus", kind="Prometheus", page=REVIEW, state="cannot be used", trouble=problem, wrong=True)
    elif name is None:
        need = f"{URL_SETTING} would name one."
        yield OtherSource(name="Prometheus", kind="Prometheus", page=REVIEW, state="not configured", trouble=need)
    else:
        asked = review_live.last_asked()
        state = "not asked" if asked is None else "asked; it answered"
        yield OtherSource(name=name, kind="Prometheus", page=REVIEW, state=state, at=asked)


def _history(now: datetime) -> OtherSource:
    kind, page = "history", "trends, Replay"
    standing = history.store_standing(now)
    if isinstance(standing, str):
        configured = bool(os.environ.get(history.HISTORY_SETTING, "").strip())
        state = "cannot be read" if configured else "not configured: the demo has its own"
        trouble = standing if configured else f"{history.HISTORY_SETTING} would name your own."
        return OtherSource(name="History", kind=kind, page=page, state=state, trouble=trouble, wrong=configured)
    info, recorders = standing
    ill = [recorder.sentence() for recorder in recorders if not recorder.is_well]
    last = max((one.span.last for one in info.sources if one.span.last is not None), default=None)
    state = "recorded" if recorders and not ill else "no recorder is well" if ill else "no recorder"
    name = info.name.rpartition("/")[2]
    return OtherSource(name=name, kind=kind, page=page, state=state, at=last, trouble=" ".join(ill), wrong=bool(ill))


def _ledger() -> OtherSource:
    url = os.environ.get(LEDGER_SETTING, "").strip()
    if not url:
        need = f"{LEDGER_SETTING} would name your own."
        return OtherSource(name="A made-up ledger", kind="ledger, synthetic", page="Budget", state="made up", trouble=need)
    if "://" in url:
        return OtherSource(name="PostgreSQL", kind="ledger", page="Budget", state="configured; Budget asks it")
    file = Path(url)
    at = _written(file)
    if at is None:
        trouble = f"There is no such file, or it may not be read; {LEDGER_SETTING} names it."
        return OtherSource(name=file.name, kind="ledger", page="Budget", state="not there", trouble=trouble, wrong=True)
    return OtherSource(name=file.name, kind="ledger", page="Budget", state="ready", at=at)


KEPT_SWEEPS = "Sweeps kept here"


def _sweeps() -> OtherSource:
    configured = bool(os.environ.get(SWEEPS_SETTING, "").strip())
    folder = sweeps_folder()
    need = (
        ""
        if configured
        else f"Of this installation alone. A stop of the machine may take them; {SWEEPS_SETTING} would name a folder that stays."
    )
    try:
        kept = [file for file in folder.iterdir() if file.is_file()] if folder.exists() else []
    except OSError as error:
        trouble = f"It cannot be read: {error.strerror}."
        return OtherSource(name=KEPT_SWEEPS, kind="sweeps", page="Sweep", state="cannot be read", trouble=trouble, wrong=True)
    state = "nothing is kept yet" if not kept else "1 file is kept" if len(kept) == 1 else f"{len(kept):,} files are kept"
    at = max((time for file in kept if (time := _written(file)) is not None), default=None)
    return OtherSource(name=KEPT_SWEEPS, kind="sweeps", page="Sweep", state=state, at=at, trouble=need)


def _written(path: Path) -> datetime | None:
    """Return when a file, or the latest file of a folder, was written; null where there is none to be read."""
    try:
        files = [path] if path.is_file() else [file for file in path.iterdir() if file.is_file()]
        return datetime.fromtimestamp(max(file.stat().st_mtime for file in files), UTC) if files else None
    except OSError:
        return None
