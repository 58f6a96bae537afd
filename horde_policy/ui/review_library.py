"""The exported metrics that the review pages can show: the bundled week, folders, a history's, uploads, a Prometheus or Mimir.

Folders, the history and the server come from the configuration only. What was read is kept once for all viewers as counts; an
upload's own bytes are not. An upload is named by its content, so a link to it works for whoever has it, as long as this process
keeps it.
"""

import hashlib
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from collections.abc import Mapping as MappingOf
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

import streamlit as st

from horde_policy.errors import InputError
from horde_policy.history.kept import kept_samples
from horde_policy.imports.mapping import Mapping
from horde_policy.imports.read import read_exports
from horde_policy.imports.unpack import ExportFile
from horde_policy.review.exported import Exported, exported_from
from horde_policy.review.exported import ExportFile as ReadFile
from horde_policy.review.loading import DEMO_WEEK, about_uploads, exported_kept, load_exports
from horde_policy.ui import history, review_live
from horde_policy.views.review_state import ReviewState
from horde_policy.views.uploads import not_kept

__all__ = ["DEMO", "EXPORTS_SETTING", "LIVE", "Entry", "Library", "entries", "exported_of", "gone", "library", "missing_folders"]

EXPORTS_SETTING = "HORDE_POLICY_EXPORTS"
"""Files and folders of exported metrics, separated as in ``PATH``: what is too large to be uploaded is put there."""

DEMO = "demo"
LIVE = "prometheus"
UPLOAD_PREFIX: Final = "upload-"

KEPT_ROWS = 6_000_000
"""Rows of uploads' counts that a process keeps, at some 100 bytes each; the oldest are dropped beyond them."""

MOST_FILES = 200
MOST_UNPACKED_BYTES = 2 << 30
"""What one uploaded file may unpack to, which is ten seconds or so of reading; a folder's may to more."""


@dataclass(frozen=True, slots=True)
class Entry:
    """Data that can be chosen: its key in the address, how it is called (hostile text), and of which kind it is."""

    key: str
    title: str
    kind: Literal["demo", "folder", "kept", "live"]
    path: Path | None = None
    kept: str = ""
    """The name that a history keeps it under (hostile text)."""


@dataclass(slots=True)
class Library:
    """The uploads that were read, shared by all viewers, the newest last; guarded by its lock."""

    uploads: OrderedDict[str, Exported] = field(default_factory=OrderedDict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(
        self, files: Sequence[ExportFile], mapping: Mapping | None = None, *, progress: Callable[[float], None] | None = None
    ) -> tuple[str, Exported]:
        """Read uploaded files of any supported form as one export, and keep what they count.

        A file that cannot be read is left out whole and told as a problem, as long as another can be.

        Parameters
        ----------
        files, mapping
            The uploads.
        progress
            Is told which share of the bytes was read; what it raises ends the reading, and nothing is kept.

        Raises
        ------
        InputError
            Every file is of no supported form, damaged beyond use or too large unpacked, or none holds one of the series.
        """
        if not 0 < len(files) <= MOST_FILES:
            raise InputError("upload", "", len(files), f"files were given: it must be 1 to {MOST_FILES}")
        exports, title, synthetic = about_uploads(files)
        if not exports:
            raise InputError("upload", "", files[0].name, "describes exports and is none: upload them with it")
        imported = read_exports(exports, mapping=mapping, max_unpacked_bytes=MOST_UNPACKED_BYTES, progress=progress)
        exported = exported_from(imported, title=title, synthetic=synthetic)
        if exported.report is not None and not exported.report.understood:
            found = sum(skipped.count for file in exported.report.files for skipped in file.skipped)
            names = ", ".join(file.name for file in exported.files)
            others = f"{found:,} sample{'' if found == 1 else 's'} of others"
            rule = f"must hold at least one of the allowance's three series; {others} are in it"
            hint = "what the allowance's series are called in them can be said by a mapping file"
            raise InputError("upload", "", names, rule, hint=hint)
        key = _key(files, mapping)
        if progress is not None:
            progress(1.0)  # the last moment to cancel
        with self.lock:
            self.uploads[key] = exported
            self.uploads.move_to_end(key)
            while len(self.uploads) > 1 and sum(_rows(one) for one in self.uploads.values()) > KEPT_ROWS:
                self.uploads.popitem(last=False)
        return key, exported

    def upload(self, key: str) -> Exported:
        """Return what an upload counted.

        Raises
        ------
        InputError
            This process does not keep it, or no longer.
        """
        with self.lock:
            if key not in self.uploads:
                raise not_kept("data", key)
            return self.uploads[key]

    def keeps(self, key: str) -> bool:
        """Return whether the upload of a key is kept."""
        with self.lock:
            return key in self.uploads

    def forget(self, key: str) -> None:
        """Drop an upload; one that is not kept is none."""
        with self.lock:
            self.uploads.pop(key, None)


def _rows(exported: Exported) -> int:
    return exported.decisions.height + exported.waits.height + exported.wait_sums.height


def _key(files: Sequence[ExportFile], mapping: Mapping | None) -> str:
    """Return the key of uploaded files: equal content in equal names, in any order, has an equal key."""
    digests = []
    for file in files:
        digest = hashlib.blake2b(file.name.encode("utf-8", "surrogatepass"), digest_size=16)
        digest.update(b"\0")
        digest.update(file.data.read_bytes() if isinstance(file.data, Path) else file.data)
        digests.append(digest.digest())
    said = "" if mapping is None else repr(mapping)
    return UPLOAD_PREFIX + hashlib.blake2b(b"".join(sorted(digests)) + said.encode(), digest_size=16).hexdigest()


@st.cache_resource(show_spinner=False)
def library() -> Library:
    """Return the one library of the process."""
    return Library()


def _configured() -> list[Path]:
    return [Path(text.strip()) for text in os.environ.get(EXPORTS_SETTING, "").split(os.pathsep) if text.strip()]


def _exports_in(path: Path) -> list[Path]:
    """Return a file or folder of exports, and the folders of exports inside it."""
    if path.is_file():
        return [path]
    if not path.is_dir():
        return []
    inside = [folder for folder in sorted(path.iterdir()) if folder.is_dir() and not folder.name.startswith(".")]
    return [folder for folder in (path, *inside) if _signature(folder)]


def missing_folders() -> tuple[str, ...]:
    """Return what is configured and holds no export."""
    return tuple(str(path) for path in _configured() if not _exports_in(path))


def _signature(path: Path) -> tuple[tuple[str, int, int], ...]:
    """Return what changes when a file or a folder's files do: names, times and sizes."""
    files = [path] if path.is_file() else [one for one in sorted(path.iterdir()) if one.is_file()]
    stats = [(file.name, file.stat()) for file in files if not file.name.startswith(".")]
    return tuple((name, stat.st_mtime_ns, stat.st_size) for name, stat in stats)


def entries() -> dict[str, Entry]:
    """Return the data that can be chosen by everybody, the demo first; nothing is read or asked."""
    found = [Entry(DEMO, "Demo week (synthetic)", "demo", DEMO_WEEK)]
    taken: dict[str, int] = {}
    for path in (inner for configured in _configured() for inner in _exports_in(configured)):
        plain = "".join(c if c.isascii() and c.isalnum() else "-" for c in path.resolve().name)[:60]
        taken[plain] = taken.get(plain, 0) + 1
        number = f"-{taken[plain]}" if taken[plain] > 1 else ""
        found.append(Entry(f"folder-{plain}{number}", path.resolve().name, "folder", path))
    for kept in history.kept_metrics():
        digest = hashlib.blake2b(kept.name.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
        title = f"{kept.title or kept.name} (kept in the history)"
        found.append(Entry(f"kept-{digest}", title, "kept", kept=kept.name))
    server = review_live.server_name()
    if server is not None:
        found.append(Entry(LIVE, server, "live"))
    return {entry.key: entry for entry in found}


@st.cache_resource(max_entries=8, show_spinner="Reading the exports …")
def _read(path: Path, signature: tuple[tuple[str, int, int], ...]) -> Exported:
    """Read a folder or a file of exports; once for all viewers, as long as its files stay what they are."""
    return load_exports([path])


@st.cache_resource(max_entries=4, show_spinner="Reading what the history keeps …")
def _kept(name: str, signature: tuple[object, ...]) -> Exported:
    """Read what the history keeps under a name; once for all viewers, until more is collected."""
    store = history.open_store()
    if store is None:
        raise InputError("data", "", name, "are kept in a history, and none is configured on this server")
    samples, export = kept_samples(store, name)
    read = ReadFile(name=name, form="history", samples=export.runs, skipped=0, first=export.first, last=export.last)
    title = export.title or f"Metrics of {name}, kept in the history"
    return exported_kept(samples, read, title=title, synthetic=export.synthetic)


def gone(key: str) -> bool:
    """Return whether a key names an upload that this server does not keep, or no longer."""
    return key.startswith(UPLOAD_PREFIX) and not library().keeps(key)


def exported_of(key: str, known: MappingOf[str, Entry], state: ReviewState) -> Exported:
    """Return what the data of a key counted, all of it; a live server is asked for the range of the state.

    Raises
    ------
    HordePolicyError
        There are no such data here, they cannot be read, or the server gives no answer.
    """
    if key.startswith(UPLOAD_PREFIX):
        return library().upload(key)
    entry = known.get(key or DEMO)
    if entry is None:
        raise InputError("data", "", key, "are not configured on this server")
    if entry.kind == "kept":
        kept = next((one for one in history.kept_metrics() if one.name == entry.kept), None)
        return _kept(entry.kept, () if kept is None else (kept.runs, kept.bytes_, kept.first, kept.last))
    if entry.path is None:
        return review_live.asked(state.span)
    try:
        return _read(entry.path, _signature(entry.path))
    except OSError as error:
        raise InputError("data", "", str(entry.path), f"cannot be read: {error.strerror}") from error
