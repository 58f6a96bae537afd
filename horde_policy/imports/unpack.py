"""Bytes of an export, unpacked in chunks: plain, gzip and zstd of any number of members, the Collector's framed zstd, UTF-16.

Told by content, not by name. What is unpacked is bounded, since a packed export grows twenty to fifty times and a bomb more
(exports.md 16). A file that ends early or is damaged gives what was readable up to there, and says so.
"""

import codecs
import io
import mmap
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

import zstandard

from horde_policy.errors import InputError

__all__ = ["CHUNK_BYTES", "HEAD_BYTES", "MAX_RECORD_BYTES", "MAX_UNPACKED_BYTES", "ExportFile", "Unpacked", "long_lines"]

MAX_UNPACKED_BYTES = 8 << 30
"""What one file may unpack to, unless the caller says otherwise."""

MAX_RECORD_BYTES = 64 << 20
"""The longest line or record: more is no export of metrics, and would be memory."""

CHUNK_BYTES = 1 << 20
HEAD_BYTES = 64 << 10
ZSTD_BITE_BYTES = 2 << 10
MAX_LAYERS = 3

_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_BOMS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))


@dataclass(frozen=True, slots=True)
class ExportFile:
    """An export by name: a path, or bytes that were uploaded or answered. ``modified`` is the file's own time, if it has one."""

    name: str
    data: bytes | memoryview | Path

    @property
    def modified(self) -> datetime | None:
        """Return when the file was last written; null for bytes."""
        return datetime.fromtimestamp(self.data.stat().st_mtime, UTC) if isinstance(self.data, Path) else None

    @property
    def size_bytes(self) -> int:
        """Return how long it is as it lies there; 0 for a file that is not there, which reading it says."""
        if not isinstance(self.data, Path):
            return memoryview(self.data).nbytes
        return self.data.stat().st_size if self.data.is_file() else 0

    def open(self) -> IO[bytes]:
        """Return the bytes as a stream; raise InputError for a file that cannot be read."""
        if not isinstance(self.data, Path):
            return io.BytesIO(self.data)
        try:
            return self.data.open("rb")
        except OSError as error:
            raise InputError("export", "", str(self.data), f"cannot be read: {error.strerror}") from error


@dataclass(slots=True)
class Unpacked:
    """The unpacked content of one export, once through.

    Attributes
    ----------
    packing
        The layers taken off, from outside: ``gzip``, ``zstd``, ``collector zstd``, ``utf-16-le`` and so on.
    unpacked_bytes
        How much was unpacked so far.
    damage
        What is wrong with the packing, once that was met: the content then ends there. Null as long as all is well.
    told
        Is told how many bytes of the file itself were read so far; what it raises ends the reading.
    """

    file: ExportFile
    limit_bytes: int = MAX_UNPACKED_BYTES
    told: Callable[[int], None] | None = None
    packing: list[str] = field(default_factory=list)
    unpacked_bytes: int = 0
    damage: str | None = None
    head: bytes = b""
    _source: Iterator[bytes] = field(init=False)

    def __post_init__(self) -> None:
        chunks = self._bounded(_read(self.file, self.told))
        for _ in range(MAX_LAYERS):
            head, chunks = _peeked(chunks, 8)
            if head.startswith(_GZIP):
                self.packing.append("gzip")
                chunks = self._bounded(self._gzip(chunks))
            elif _is_zstd(head):
                self.packing.append("zstd")
                chunks = self._bounded(self._zstd(chunks))
            elif _is_zstd(head[4:]):
                self.packing.append("collector zstd")
                chunks = self._bounded(self._framed_zstd(chunks))
            else:
                break
        head, chunks = _peeked(chunks, HEAD_BYTES)
        encoding = _encoding_of(head)
        if encoding is not None:
            self.packing.append(encoding)
            head, chunks = _peeked(self._recoded(chunks, encoding), HEAD_BYTES)
        if head.startswith((_GZIP, _ZSTD)):
            raise InputError("export", self.file.name, MAX_LAYERS, "layers of packing are the most that are taken off")
        self.head, self._source = head[:HEAD_BYTES], chunks

    def chunks(self) -> Iterator[bytes]:
        """Give the content in chunks of about a megabyte."""
        yield from self._source

    def lines(self, size: int, longest: int | None = None) -> Iterator[bytes]:
        """Give whole lines in blocks of about ``size`` bytes; the last block may lack its line end.

        A line of more than ``longest`` bytes (null: :data:`MAX_RECORD_BYTES`) is an InputError.
        """
        most = MAX_RECORD_BYTES if longest is None else longest
        held: list[bytes | memoryview] = []
        length, open_bytes = 0, 0
        for chunk in self._source:
            open_bytes = self._unended(chunk, open_bytes, most)
            held.append(chunk)
            length += len(chunk)
            end = chunk.rfind(b"\n") + 1 if length >= size else 0
            if end:
                held[-1] = memoryview(chunk)[:end]
                yield b"".join(held)
                held, length = [chunk[end:]], len(chunk) - end
        if length:
            yield b"".join(held)

    def _unended(self, chunk: bytes, open_bytes: int, most: int) -> int:
        """Return how long the line is that the chunk leaves open, ``open_bytes`` of which lie before it; refuse a longer one."""
        begin = -open_bytes
        while len(chunk) - begin > most:
            end = chunk.rfind(b"\n", max(begin, 0), max(begin + most + 1, 0))
            if end < 0:
                rule = f"bytes without a line end: a line may have {most}"
                stop = chunk.find(b"\n", max(begin, 0))
                raise InputError("export", self.file.name, (len(chunk) if stop < 0 else stop) - begin, rule)
            begin = end + 1
        last = chunk.rfind(b"\n", max(begin, 0)) + 1
        return len(chunk) - (last or begin)

    @contextmanager
    def document(self) -> Iterator[memoryview]:
        """Give the content as one piece, from the file itself or through a temporary file, so that it need not be in memory."""
        data = self.file.data
        if not self.packing and not isinstance(data, Path):
            yield memoryview(data)
            return
        with tempfile.TemporaryFile() as spool:
            for chunk in self._source:
                spool.write(chunk)
            spool.flush()
            if not spool.tell():
                yield memoryview(b"")
                return
            # not closed by hand: what was raised over a part of it may still hold it
            yield memoryview(mmap.mmap(spool.fileno(), 0, access=mmap.ACCESS_READ))

    def _bounded(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        total = 0
        for chunk in chunks:
            total += len(chunk)
            self.unpacked_bytes = max(self.unpacked_bytes, total)
            if total > self.limit_bytes:
                raise InputError(
                    "export",
                    self.file.name,
                    self.limit_bytes,
                    "bytes are the most that a file may unpack to; this one goes on after them",
                )
            yield chunk

    def _gzip(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        member = zlib.decompressobj(zlib.MAX_WBITS | 16)
        begun = False
        for chunk in chunks:
            left = chunk
            while left:
                if not begun:
                    left = left.lstrip(b"\0")  # members may be padded with zeros
                    if not left:
                        break
                    member, begun = zlib.decompressobj(zlib.MAX_WBITS | 16), True
                try:
                    unpacked = member.decompress(left, CHUNK_BYTES)
                except zlib.error as error:
                    self.damage = f"the gzip packing is damaged: {error}"
                    return
                if unpacked:
                    yield unpacked
                left = member.unused_data if member.eof else member.unconsumed_tail
                begun = not member.eof
        if begun:
            self.damage = "the gzip packing ends early"

    def _zstd(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        frame = zstandard.ZstdDecompressor().decompressobj()
        begun = False
        for chunk in chunks:
            # small bites: each may grow some ten thousand times
            for bite in (chunk[at : at + ZSTD_BITE_BYTES] for at in range(0, len(chunk), ZSTD_BITE_BYTES)):
                left = bite
                while left:
                    if not begun:
                        frame, begun = zstandard.ZstdDecompressor().decompressobj(), True
                    try:
                        unpacked = frame.decompress(left)
                    except zstandard.ZstdError as error:
                        self.damage = f"the zstd packing is damaged: {error}"
                        return
                    if unpacked:
                        yield unpacked
                    left = frame.unused_data if frame.eof else b""
                    begun = not frame.eof
        if begun:
            self.damage = "the zstd packing ends early"

    def _framed_zstd(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        """Give the records of the Collector's file exporter: JSON as lines, protobuf with a 4-byte length (exports.md 13)."""
        stream = _Stream(chunks)
        packer = zstandard.ZstdDecompressor()
        while prefix := stream.read(4):
            size = int.from_bytes(prefix, "big")
            frame = stream.read(size) if size <= MAX_RECORD_BYTES else b""
            if len(prefix) < 4 or len(frame) < size:
                self.damage = "the last record of the collector's zstd file is cut off"
                return
            try:
                with packer.stream_reader(frame) as reader:
                    record = reader.read(MAX_RECORD_BYTES + 1)
            except zstandard.ZstdError as error:
                self.damage = f"a record of the collector's zstd file is damaged: {error}"
                return
            if len(record) > MAX_RECORD_BYTES:
                raise InputError("export", self.file.name, len(record), f"bytes in one record: the most is {MAX_RECORD_BYTES}")
            yield record + b"\n" if record[:1] in {b"{", b"["} else len(record).to_bytes(4, "big") + record

    def _recoded(self, chunks: Iterator[bytes], encoding: str) -> Iterator[bytes]:
        decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
        for chunk in chunks:
            yield decoder.decode(chunk).removeprefix("\ufeff").encode()
        yield decoder.decode(b"", final=True).encode()


def long_lines(block: bytes, most: int) -> Iterator[tuple[int, int]]:
    r"""Give begin and end of each line, with its line end, that has more than ``most`` bytes; cheap where there is none.

    >>> list(long_lines(b"ab\nabcd\nabc", 3)), list(long_lines(b"ab\nabc\n", 3))
    ([(3, 8)], [])
    """
    begin = 0
    while len(block) - begin > most:
        end = block.rfind(b"\n", begin, begin + most + 1) + 1
        if not end:
            end = block.find(b"\n", begin + most) + 1 or len(block)
            yield begin, end
        begin = end


@dataclass(slots=True)
class _Stream(io.RawIOBase):
    """Chunks as a readable stream, for libraries that want one."""

    source: Iterator[bytes]
    held: bytes = b""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        parts, have = [self.held], len(self.held)
        while size < 0 or have < size:
            chunk = next(self.source, None)
            if chunk is None:
                break
            parts.append(chunk)
            have += len(chunk)
        everything = b"".join(parts)
        cut = len(everything) if size < 0 else size
        self.held = everything[cut:]
        return everything[:cut]


def _read(file: ExportFile, told: Callable[[int], None] | None) -> Iterator[bytes]:
    with file.open() as stream:
        while chunk := stream.read(CHUNK_BYTES):
            if told is not None:
                told(stream.tell())
            yield chunk


def _peeked(chunks: Iterator[bytes], size: int) -> tuple[bytes, Iterator[bytes]]:
    """Return at least ``size`` first bytes, if there are so many, and the chunks with them."""
    held: list[bytes] = []
    while sum(map(len, held)) < size and (chunk := next(chunks, None)) is not None:
        held.append(chunk)
    head = b"".join(held)

    def whole() -> Iterator[bytes]:
        if head:
            yield head
        yield from chunks

    return head, whole()


def _is_zstd(head: bytes) -> bool:
    skippable = len(head) >= 4 and 0x50 <= head[0] <= 0x5F and head[1:4] == b"\x2a\x4d\x18"
    return head.startswith(_ZSTD) or skippable


def _encoding_of(head: bytes) -> str | None:
    """Return the encoding of text that is not plain UTF-8, by its byte-order mark or its zero bytes; null for all else."""
    for mark, encoding in _BOMS:
        if head.startswith(mark):
            return encoding
    pairs = head[:200]
    if len(pairs) >= 8 and len(pairs) % 2 == 0:
        even, odd = pairs[0::2], pairs[1::2]
        if not any(odd) and all(even):
            return "utf-16-le"
        if not any(even) and all(odd):
            return "utf-16-be"
    return None
