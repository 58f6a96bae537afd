"""What one JSON record may hold: text is read into objects of many times its size, so their number is bounded beforehand."""

import re
from collections.abc import Iterator

import numpy as np

__all__ = ["MAX_OBJECTS", "MAX_PARTS", "elements", "holds_more"]

MAX_PARTS = 4_000_000
"""So many values one record may hold, told by its commas and brackets: a request of 60 MB has fewer."""

MAX_OBJECTS = 2_000_000
"""So many objects one answer of an API may hold; each of its series is two."""

PIECE_BYTES = 1 << 20

# possessive, and it matches anywhere: each byte is looked at once, whatever the text is
_BRACKETS = re.compile(rb'(?:[^"{}\[\]]++|"(?:[^"\\]++|\\.)*+")*+([{\[]+|[}\]]+|"|\Z)', re.DOTALL)


def holds_more(text: bytes | memoryview, most: int, marks: bytes = b",{[") -> bool:
    """Return whether a text holds more than ``most`` of the marks; at once for a text that is shorter.

    >>> holds_more(b"[1,2,3]", 2), holds_more(b"[1,2,3]", 3)
    (True, False)
    """
    if len(text) <= most:
        return False
    found = 0
    content = np.frombuffer(text, dtype=np.uint8)
    for at in range(0, content.size, PIECE_BYTES):
        piece = content[at : at + PIECE_BYTES]
        found += sum(int(np.count_nonzero(piece == mark)) for mark in marks)
        if found > most:
            return True
    return False


def elements(document: bytes | memoryview) -> Iterator[memoryview]:
    """Give the elements of a JSON array of objects one by one, without holding the array.

    Raises ValueError where it ends early, or holds something else between them.

    Examples
    --------
    >>> [bytes(one) for one in elements(b'[{"a":"]"}, {"b":[1]}]')]
    [b'{"a":"]"}', b'{"b":[1]}']
    """
    view = memoryview(document)
    depth, begin, end = 0, 0, 0
    for found in _BRACKETS.finditer(view):
        at, marks = found.start(1), found[1]
        if not marks or marks == b'"':
            break
        if marks[0] in b"{[":
            if depth < 2 <= depth + len(marks):
                begin = at + 1 - depth
                if depth == 1 and (begin - end > PIECE_BYTES or bytes(view[end:begin]).strip(b" \t\r\n,")):
                    raise ValueError("an element is no object")
            elif depth == 0:
                end = at + 1
            depth += len(marks)
            continue
        closed = depth - len(marks)
        if depth == 1 and (at - end > PIECE_BYTES or bytes(view[end:at]).strip(b" \t\r\n")):
            raise ValueError("an element is no object")
        if closed <= 1 < depth:
            end = at + depth - 1
            yield view[begin:end]
        depth = closed
        if depth <= 0:
            return
    raise ValueError("it ends early")
