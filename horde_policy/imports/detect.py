"""Which form an export has, told by its content and not by its name."""

import re
from typing import Literal

from horde_policy.errors import InputError

__all__ = ["Form", "detect"]

Form = Literal["exposition", "prometheus_json", "otlp_json", "otlp_proto", "grafana_csv", "parquet"]

_OTLP = re.compile(rb'"(resource_?[Mm]etrics|resource_?[Ll]ogs|resource_?[Ss]pans)"')
_PROMETHEUS = re.compile(rb'"(resultType|result|metric|values|status)"')
_SAMPLE = re.compile(
    rb'[a-zA-Z_:][\w:.]*+(\s*\{.*\}\s*|\s+)[-+]?(\d|\.\d|inf|nan)|\{\s*"(?:[^"\\]++|\\.)*+"\s*[,}]', re.IGNORECASE
)
_COMMENT = re.compile(rb"#\s*(HELP|TYPE|UNIT|EOF)\b")


def detect(head: bytes, name: str) -> Form:
    """Return the form of the content that begins with ``head``.

    Raises
    ------
    InputError
        It is empty, or none of the forms.

    Examples
    --------
    >>> detect(b'up{job="a"} 1', "a"), detect(b'{"resourceMetrics":[]}', "b"), detect(b'"Series";"Time";"Value"', "c")
    ('exposition', 'otlp_json', 'grafana_csv')
    """
    start = head.lstrip(b" \t\r\n")
    if not start:
        raise InputError("export", name, 0, "bytes of content: the file is empty")
    if start.startswith(b"PAR1"):
        return "parquet"
    if start[:1] in b"{[" and (form := _json_form(start)):
        return form
    if _is_exposition(start):
        return "exposition"
    if _is_csv(start):
        return "grafana_csv"
    if start.startswith(b"#") and all(not line.strip() or line.lstrip().startswith(b"#") for line in start.split(b"\n")):
        rule = (
            "bytes of comments come first, without a sample or a # HELP or # TYPE line: a text exposition has one of them by "
            "then, so the rest is not unpacked"
        )
        raise InputError("export", name, len(head), rule)
    if _is_otlp_proto(head):
        return "otlp_proto"
    rule = (
        "is none of: Prometheus text or OpenMetrics, a Prometheus API answer, OTLP JSON or protobuf, Grafana's CSV, our Parquet;"
        " packed by gzip or zstd at most"
    )
    raise InputError("export", f"{name}, first bytes", _readable(bytes(head[:24])), rule)


def _readable(start: bytes) -> str:
    """Return the first bytes as text, or as hexadecimal digits where they are none.

    >>> _readable(b"%PDF-1.7"), _readable(bytes([0x89, 0x50, 0x4E, 0x47]))
    ('%PDF-1.7', '89 50 4e 47')
    """
    return start.decode("ascii") if start.isascii() and start.decode("ascii").isprintable() else start.hex(" ")


def _json_form(start: bytes) -> Form | None:
    """Return the form of a JSON document; OTLP and Prometheus name themselves within the first kilobytes."""
    otlp, prometheus = _OTLP.search(start), _PROMETHEUS.search(start)
    if otlp and (not prometheus or otlp.start() < prometheus.start()):
        return "otlp_json"
    return "prometheus_json" if prometheus else None


def _is_exposition(start: bytes) -> bool:
    for line in start.split(b"\n", 50)[:50]:
        text = line.strip()
        if _COMMENT.match(text):
            return True
        if text and not text.startswith(b"#"):
            return _SAMPLE.match(text) is not None
    return False


def _is_csv(start: bytes) -> bool:
    lines = start.split(b"\n", 2)
    first, separators = lines[0], b",;\t"
    if lines[0].lower().startswith(b"sep=") and len(lines) > 1:
        first, separators = lines[1], lines[0].rstrip(b"\r\n")[4:5] or b","
    if b"\0" in first:
        return False
    cells = [cell.strip(b'" \r').lower() for cell in re.split(b"[" + re.escape(separators) + b"]", first)]
    return len(cells) > 1 and bool({b"time", b"timestamp", b"date", b"ts"} & set(cells[:3]))


def _is_otlp_proto(head: bytes) -> bool:
    """Return whether the bytes begin with a request's first field, bare or after a 4-byte or varint length."""
    if head[:1] == b"\x0a":
        return len(head) > 2
    if len(head) > 5 and head[4:5] == b"\x0a" and head[0] == 0:
        return True
    for place in range(min(4, len(head) - 2)):
        if head[place] < 0x80:
            return place >= 0 and head[place + 1 : place + 2] == b"\x0a"
    return False
