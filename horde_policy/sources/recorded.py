"""A folder of recorded answers as a snapshot: the layout of AI Horde recordings, one file an endpoint.

Each file is an envelope of ``recorded_at``, ``request`` and ``response`` with ``status`` and ``body``; a file that holds the
bare body is read too, with the file's own time. ``about.json``, if there, names the recording and says what is made up.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from horde_policy.errors import InputError, Problem, SourceFormatError, shown
from horde_policy.frames.model_look import ModelLook
from horde_policy.frames.snapshot import Snapshot, SourceKind
from horde_policy.sources.one_model import model_look, named_in
from horde_policy.sources.parts import PARTS, Part, PartName, assemble, missing, read_part
from horde_policy.sources.payloads import parse_json

__all__ = ["RecordedSource", "is_recorded_folder", "load_recorded", "recorded_folders", "recorded_model", "recorded_title"]

ABOUT_FILE = "about.json"
ONE_MODEL_FILES = "model_single_*.json"
LARGEST_FILE_BYTES = 64 * 1024 * 1024
OK = 200


@dataclass(frozen=True, slots=True)
class _Envelope:
    """A recorded answer: its status and body, and when it was recorded (null if the file does not say)."""

    status: object
    body: object
    recorded_at: object
    path: str = ""


def _envelope(value: Any) -> _Envelope:
    if isinstance(value, dict) and isinstance(value.get("response"), dict):
        response, request = value["response"], value.get("request")
        path = request.get("path") if isinstance(request, dict) else None
        recorded_at = value.get("recorded_at")
        return _Envelope(response.get("status", OK), response.get("body"), recorded_at, path if isinstance(path, str) else "")
    return _Envelope(OK, value, None)


def _unusable(path: Path, error: SourceFormatError) -> InputError:
    """Return the error that names the file, with what is wrong in it said once."""
    return InputError("recorded folder", f"file {path.name}", str(path), str(error).removeprefix(f"{error.source}: "))


def _read_file(path: Path, name: str) -> tuple[Any, tuple[Problem, ...]]:
    """Return the JSON value of a file and what was mended in it; InputError if it cannot be read."""
    try:
        size = path.stat().st_size
        if size > LARGEST_FILE_BYTES:
            raise InputError("recorded folder", f"file {path.name}", size, f"must be at most {LARGEST_FILE_BYTES} bytes")
        return parse_json(path.read_bytes(), "recorded folder", name)
    except OSError as error:
        raise InputError("recorded folder", f"file {path.name}", str(path), f"cannot be read: {error.strerror}") from error
    except SourceFormatError as error:
        raise _unusable(path, error) from error


def _recorded_at(path: Path, given: object) -> tuple[datetime, tuple[Problem, ...]]:
    """Return when an answer was recorded; the file's own time, with a note, where the recording does not say."""
    if isinstance(given, str):
        try:
            at = datetime.fromisoformat(given)
            return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC), ()
        except (ValueError, OverflowError):
            pass
    at = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    told = "has no recorded_at" if given is None else f"has recorded_at {shown(given)}, which is no instant"
    text = f"file {path.name} {told}; the time of the file stands for it"
    return at, (Problem("no_time", path.name, text, "note" if given is None else "problem"),)


def _load_part(path: Path, name: PartName) -> Part:
    value, mended = _read_file(path, name)
    envelope = _envelope(value)
    if envelope.status != OK:
        raise InputError("recorded folder", f"file {path.name}, status", envelope.status, "must be 200 for its answer to be used")
    at, untimed = _recorded_at(path, envelope.recorded_at)
    try:
        return read_part(name, envelope.body, at, "recorded folder", (*mended, *untimed))
    except SourceFormatError as error:
        raise _unusable(path, error) from error


def is_recorded_folder(folder: Path) -> bool:
    """Say whether the folder holds a recorded workers answer, without which there is no snapshot."""
    return (folder / PARTS["workers"].file).is_file()


def recorded_folders(folder: Path) -> tuple[Path, ...]:
    """Return the folder itself if it is a recorded one, else those of its sub-folders that are, by name; none if unreadable."""
    try:
        if is_recorded_folder(folder):
            return (folder,)
        return tuple(sorted(inner for inner in folder.iterdir() if is_recorded_folder(inner)))
    except OSError:
        return ()


def _about(folder: Path) -> Mapping[str, Any]:
    path = folder / ABOUT_FILE
    if not path.is_file():
        return {}
    about, _ = _read_file(path, "about")
    if not isinstance(about, dict):
        raise InputError("recorded folder", f"file {ABOUT_FILE}", about, "must be an object with title and synthetic")
    return about


def recorded_title(folder: Path) -> str:
    """Return how a recorded folder is called to people: the title of its ``about.json``, else its name in plain words.

    Nothing else of the folder is read. Of an ``about.json`` that cannot be used the reading of the folder tells.

    >>> recorded_title(Path("recordings/my_horde_2026-11"))
    'my horde 2026-11'
    """
    try:
        title = _about(folder).get("title")
    except InputError:
        title = None
    return title if isinstance(title, str) and title.strip() else folder.resolve().name.replace("_", " ")


def load_recorded(folder: Path | str, *, kind: SourceKind = "recorded") -> Snapshot:
    """Return the snapshot that a folder of recorded answers gives.

    A missing modes, heartbeat, stats or performance file is a note; a missing models file a problem, and then no queue is
    known. A file that cannot be read, or whose recorded status is not 200, counts as missing, with a problem that says so.

    Raises
    ------
    InputError
        The folder is not there, holds no ``workers_text.json``, or that file cannot be used.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError("recorded folder", "", str(folder), "is not a folder")
    if not is_recorded_folder(folder):
        raise InputError("recorded folder", "", str(folder), f"holds no {PARTS['workers'].file}")
    parts: dict[PartName, Part] = {}
    problems: list[Problem] = []
    for name, spec in PARTS.items():
        path = folder / spec.file
        if not path.is_file():
            problems.append(missing(name, f"is not in the folder (no {spec.file})"))
            continue
        try:
            parts[name] = _load_part(path, name)
        except InputError as error:
            if name == "workers":
                raise
            problems.append(Problem("part_failed", name, f"{error}; {spec.without}"))
    about = _about(folder)
    title = about.get("title")
    source = title if isinstance(title, str) and title else folder.resolve().name
    return assemble(parts, source=source, kind=kind, problems=problems, synthetic=about.get("synthetic") is True)


def recorded_model(folder: Path | str, model: str) -> ModelLook | None:
    """Return what a folder's ``model_single_*.json`` say of one model; null where none holds an answer about it.

    Of several the one recorded last counts. A file that cannot be read is no answer, as is the 404 of a name encoded once.
    """
    last: Part | None = None
    for path in sorted(Path(folder).glob(ONE_MODEL_FILES)):
        try:
            value, mended = _read_file(path, "model")
            answer = _envelope(value)
            if answer.status != OK or not named_in(answer.path, model):
                continue
            at, untimed = _recorded_at(path, answer.recorded_at)
            part = read_part("models", answer.body, at, "recorded folder", (*mended, *untimed))
        except (InputError, SourceFormatError):
            continue
        if last is None or part.at >= last.at:
            last = part
    return None if last is None else model_look(model, last)


class RecordedSource:
    """A recorded folder as a source; it is read again at each load, so that a folder that grows is seen.

    Parameters
    ----------
    folder
        See :func:`load_recorded`.
    name
        As shown to people; the folder's own where not given.

    Attributes
    ----------
    name, kind, refresh_s
        As every source has them.
    """

    kind: SourceKind = "recorded"
    refresh_s = 10.0

    def __init__(self, folder: Path | str, name: str | None = None) -> None:
        self.folder = Path(folder)
        self.name = name or self.folder.resolve().name

    def load(self) -> Snapshot:
        """Return the folder's snapshot (:func:`load_recorded`)."""
        return load_recorded(self.folder)

    def model(self, name: str, *, wait_s: float = 0.0) -> ModelLook | None:
        """Return what the folder recorded of one model alone (:func:`recorded_model`); there is nothing to wait for."""
        return recorded_model(self.folder, name)
