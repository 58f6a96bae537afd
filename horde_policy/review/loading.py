"""From files of exported metrics to what is reviewed: the readers' counts, the title beside the files, the range.

An ``about.json`` beside exports names them with ``title`` and says with ``"synthetic": true`` that they are made up, which then
stands wherever they are shown.
"""

import gzip
import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from horde_policy.errors import InputError
from horde_policy.imports.mapping import Mapping
from horde_policy.imports.read import count_samples, read_exports
from horde_policy.imports.samples import Samples
from horde_policy.imports.unpack import ExportFile as ReadableFile
from horde_policy.review.exported import Exported, ExportFile, exported_from

__all__ = ["DEMO_WEEK", "about_exports", "about_uploads", "export_files", "exported_kept", "load_exports"]

DEMO_WEEK = Path(__file__).parents[2] / "data" / "week"
"""The bundled demo week: a real trace laid over itself and replayed through the rule; made up where a trace says nothing."""

ABOUT_FILE = "about.json"


def load_exports(files: Sequence[Path], *, mapping: Mapping | None = None) -> Exported:
    """Return the counts of exported files.

    Parameters
    ----------
    files
        Exports of any supported form, told by content, or folders of them.
    mapping
        What a person says about exports that do not speak for themselves.

    Raises
    ------
    InputError
        No file can be read or is of a supported form, or there is none; of several, those are left out and told as problems.
    """
    given = export_files(files)
    title, synthetic = about_exports(files)
    imported = read_exports(given, mapping=mapping)
    return exported_from(imported, title=title, synthetic=synthetic)


def exported_kept(samples: Samples, read: ExportFile, *, title: str, synthetic: bool, mapping: Mapping | None = None) -> Exported:
    """Return the counts of samples that a history keeps of exports, as one file.

    Parameters
    ----------
    samples
        What is kept, merged.
    read
        What stands for it among the files.
    title, synthetic
        What the data are called, and whether they are made up.
    mapping
        What a person says about exports that do not speak for themselves.
    """
    return replace(exported_from(count_samples(samples, mapping=mapping), title=title, synthetic=synthetic), files=(read,))


def export_files(files: Sequence[Path]) -> list[Path]:
    """Return the files, and of folders those inside but for what describes them.

    Raises
    ------
    InputError
        There is none, or a folder cannot be read.
    """
    given = [inside for file in files for inside in _inside(file)]
    if not given:
        raise InputError("export", "", ", ".join(map(str, files)), "has no file of exported metrics")
    return given


def _inside(file: Path) -> list[Path]:
    """Return a file, or the files of a folder but for what describes them."""
    if not file.is_dir():
        return [file]
    try:
        return sorted(one for one in file.iterdir() if one.is_file() and one.name != ABOUT_FILE and one.suffix.lower() != ".md")
    except OSError as error:
        raise InputError("export", "", str(file), f"cannot be read: {error.strerror}") from error


def about_exports(files: Sequence[Path]) -> tuple[str, bool]:
    """Return the title of exports and whether any of them is made up, as the ``about.json`` beside them says.

    Raises
    ------
    InputError
        An ``about.json`` cannot be read.
    """
    abouts = {(file if file.is_dir() else file.parent) / ABOUT_FILE for file in files}
    titles, synthetic = [], False
    for about in sorted(one for one in abouts if one.is_file()):
        try:
            content = about.read_bytes()
        except OSError as error:
            raise InputError("export", str(about), None, f"cannot be read as JSON: {error}") from error
        title, made_up = _about(str(about), content)
        titles.append(title)
        synthetic = synthetic or made_up
    return (titles[0] if len(titles) == 1 and len(abouts) == 1 else ""), synthetic


def _about(where: str, content: bytes | memoryview) -> tuple[str, bool]:
    """Return the title that an ``about.json`` gives, and whether it says that the exports are made up."""
    try:
        said: Any = json.loads(bytes(content))
    except ValueError as error:
        raise InputError("export", where, None, f"cannot be read as JSON: {error}") from error
    if not isinstance(said, dict) or not isinstance(said.get("title", ""), str):
        raise InputError("export", where, said, "must be an object with title and synthetic")
    return said.get("title", ""), said.get("synthetic") is True


def about_uploads(files: Sequence[ReadableFile]) -> tuple[list[ReadableFile], str, bool]:
    """Return uploaded exports without what describes them, their title, and whether any of them is made up.

    What lies in a folder's ``about.json`` may be uploaded with the exports. A bundled file is known by its content, packed or
    not: it is made up by whatever name it comes, and alone.

    Raises
    ------
    InputError
        An ``about.json`` cannot be read.
    """
    titles, synthetic, exports = [], False, []
    for file in files:
        if file.name == ABOUT_FILE:
            title, made_up = _about(file.name, _content(file))
            titles.append(title)
            synthetic = synthetic or made_up
            continue
        exports.append(file)
        synthetic = synthetic or hashlib.blake2b(_content(file)).digest() in _bundled()
    return exports, titles[0] if len(titles) == 1 else "", synthetic


def _content(file: ReadableFile) -> bytes | memoryview:
    return file.data.read_bytes() if isinstance(file.data, Path) else file.data


@cache
def _bundled() -> frozenset[bytes]:
    """Return the digests of the bundled made-up exports, as they lie there and unpacked."""
    _, synthetic = about_exports([DEMO_WEEK])
    packed = [file.read_bytes() for file in export_files([DEMO_WEEK])] if synthetic else []
    return frozenset(hashlib.blake2b(content).digest() for one in packed for content in (one, gzip.decompress(one)))
