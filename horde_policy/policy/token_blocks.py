"""The tokens of all that waits, in queue order and by column, so that what is ahead of a key is a few vector operations.

The queue is cut into blocks of consecutive keys. Row ``b`` of the prefix table holds, for every column, the tokens of all blocks
before ``b``: what is ahead of a key, over a set of columns, is one product of that row with the set, and the sum over the part of
one block. A column stands for one kind of request (:mod:`horde_policy.policy.demands`). Tokens are whole numbers held as doubles,
which is exact below 2**53: more than any queue holds.
"""

from bisect import bisect_left
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from horde_policy.policy.queue_order import QueueKey

__all__ = ["BLOCK_SIZE", "Columns", "TokenBlocks"]

BLOCK_SIZE = 2048

FEW_OF = 64
"""One key in so many or fewer move one by one: finding one takes about as long as passing so many."""

WIDEST_PRODUCT = 8192
"""OpenBLAS shares a longer product among threads, which on busy cores means milliseconds of waiting for microseconds of work."""

Columns = npt.NDArray[np.uint8]
"""A set of columns: one where a column belongs to it, else zero, and at least as long as the table has columns."""


class _Block:
    """Consecutive keys with the column and the tokens of each, in order."""

    __slots__ = ("columns", "keys", "tokens")

    def __init__(self, size: int) -> None:
        self.keys: list[QueueKey] = []
        self.columns = np.zeros(size, dtype=np.int64)
        self.tokens = np.zeros(size, dtype=np.float64)

    def insert(self, at: int, key: QueueKey, column: int, tokens: int) -> None:
        end = len(self.keys)
        self.columns[at + 1 : end + 1] = self.columns[at:end]
        self.tokens[at + 1 : end + 1] = self.tokens[at:end]
        self.columns[at], self.tokens[at] = column, tokens
        self.keys.insert(at, key)

    def delete(self, at: int) -> None:
        end = len(self.keys)
        self.columns[at : end - 1] = self.columns[at + 1 : end]
        self.tokens[at : end - 1] = self.tokens[at + 1 : end]
        del self.keys[at]

    def split(self, at: int) -> "_Block":
        """Move everything from ``at`` on into a new block and return it."""
        tail = _Block(len(self.columns))
        end = len(self.keys)
        tail.keys = self.keys[at:]
        tail.columns[: end - at] = self.columns[at:end]
        tail.tokens[: end - at] = self.tokens[at:end]
        del self.keys[at:]
        return tail


class TokenBlocks:
    """Tokens by key and column; add, change and remove one, and sum what is ahead of a key over a set of columns.

    Examples
    --------
    >>> blocks = TokenBlocks()
    >>> blocks.add(QueueKey(0.0, 1, 1), column=0, tokens=100)
    >>> blocks.add(QueueKey(0.0, 2, 2), column=1, tokens=70)
    >>> both, second = np.array([1, 1], np.uint8), np.array([0, 1], np.uint8)
    >>> blocks.ahead_of(QueueKey(0.0, 2, 3), both), blocks.ahead_of(QueueKey(0.0, 2, 1), both), blocks.in_all(second)
    (170, 100, 70)
    """

    def __init__(self, block_size: int = BLOCK_SIZE) -> None:
        self._size = block_size
        self._blocks: list[_Block] = []
        self._last_keys: list[QueueKey] = []
        self._prefix = np.zeros((4, 64), dtype=np.float64)
        self._width = 0

    def __len__(self) -> int:
        """Return how many keys there are."""
        return sum(len(block.keys) for block in self._blocks)

    def ahead_of(self, key: QueueKey, columns: Columns) -> int:
        """Return the tokens of these columns at smaller keys."""
        at_block = bisect_left(self._last_keys, key)
        tokens = self._before_block(at_block, columns)
        if at_block < len(self._blocks):
            block = self._blocks[at_block]
            at = bisect_left(block.keys, key)
            if at:
                tokens += float(block.tokens[:at] @ columns[block.columns[:at]])
        return int(tokens)

    def in_all(self, columns: Columns) -> int:
        """Return the tokens of these columns at whatever key."""
        return int(self._before_block(len(self._blocks), columns))

    def add(self, key: QueueKey, column: int, tokens: int) -> None:
        """Add a key that is not there."""
        at_block = bisect_left(self._last_keys, key)
        self._make_room(column)
        if at_block == len(self._blocks):
            if not at_block or len(self._blocks[-1].keys) == self._size:
                # at the end of the queue, where most arrive, a full block is left full
                self._insert_block(at_block, _Block(self._size))
            at_block = len(self._blocks) - 1
        block = self._blocks[at_block]
        at = bisect_left(block.keys, key)
        if len(block.keys) == self._size:
            self._halve(at_block)
            if at > self._size // 2:
                at_block, at = at_block + 1, at - self._size // 2
            block = self._blocks[at_block]
        block.insert(at, key, column, tokens)
        self._last_keys[at_block] = block.keys[-1]
        self._prefix[at_block + 1 : len(self._blocks) + 1, column] += tokens

    def remove(self, key: QueueKey) -> None:
        """Remove a key that is there."""
        at_block, at = self._place(key)
        block = self._blocks[at_block]
        self._prefix[at_block + 1 : len(self._blocks) + 1, block.columns[at]] -= block.tokens[at]
        block.delete(at)
        if block.keys:
            self._last_keys[at_block] = block.keys[-1]
            return
        end = len(self._blocks)
        self._prefix[at_block:end] = self._prefix[at_block + 1 : end + 1]
        del self._blocks[at_block], self._last_keys[at_block]

    def change(self, key: QueueKey, column: int, tokens: int) -> None:
        """Give a key that is there another column, other tokens, or both."""
        self._make_room(column)
        at_block, at = self._place(key)
        block = self._blocks[at_block]
        after = self._prefix[at_block + 1 : len(self._blocks) + 1]
        after[:, block.columns[at]] -= block.tokens[at]
        after[:, column] += tokens
        block.columns[at], block.tokens[at] = column, tokens

    def move(self, columns: Mapping[QueueKey, int]) -> None:
        """Give keys that are there other columns: many in one pass over all keys, a few one by one."""
        if not columns:
            return
        self._make_room(max(columns.values()))
        if len(columns) * FEW_OF < len(self):
            for key, column in columns.items():
                at_block, at = self._place(key)
                self.change(key, column, int(self._blocks[at_block].tokens[at]))
            return
        change = np.zeros(self._prefix.shape[1], dtype=np.float64)
        for at_block, block in enumerate(self._blocks):
            wanted = np.fromiter((columns.get(key, -1) for key in block.keys), dtype=np.int64, count=len(block.keys))
            moves = np.flatnonzero(wanted >= 0)
            np.subtract.at(change, block.columns[moves], block.tokens[moves])
            np.add.at(change, wanted[moves], block.tokens[moves])
            block.columns[moves] = wanted[moves]
            self._prefix[at_block + 1] += change

    def _before_block(self, at_block: int, columns: Columns) -> float:
        row, width = self._prefix[at_block], self._width
        if width <= WIDEST_PRODUCT:
            return float(row[:width] @ columns[:width])
        parts = (slice(start, min(start + WIDEST_PRODUCT, width)) for start in range(0, width, WIDEST_PRODUCT))
        return sum(float(row[part] @ columns[part]) for part in parts)

    def _place(self, key: QueueKey) -> tuple[int, int]:
        at_block = bisect_left(self._last_keys, key)
        return at_block, bisect_left(self._blocks[at_block].keys, key)

    def _halve(self, at_block: int) -> None:
        block = self._blocks[at_block]
        tail = block.split(self._size // 2)
        self._insert_block(at_block + 1, tail)
        self._last_keys[at_block] = block.keys[-1]
        row = self._prefix[at_block].copy()
        end = len(block.keys)
        np.add.at(row, block.columns[:end], block.tokens[:end])
        self._prefix[at_block + 1] = row

    def _insert_block(self, at_block: int, block: _Block) -> None:
        """Insert a block; the new prefix row is that of its place, which suits an empty one."""
        end = len(self._blocks)
        if end + 2 > len(self._prefix):
            self._grow(rows=2 * len(self._prefix), columns=self._prefix.shape[1])
        self._prefix[at_block + 1 : end + 2] = self._prefix[at_block : end + 1].copy()
        self._blocks.insert(at_block, block)
        self._last_keys.insert(at_block, block.keys[-1] if block.keys else QueueKey(float("inf"), 0, 0))

    def _make_room(self, column: int) -> None:
        if column >= self._width:
            self._width = column + 1
            columns = self._prefix.shape[1]
            if column >= columns:
                self._grow(rows=len(self._prefix), columns=max(2 * columns, column + 1))

    def _grow(self, *, rows: int, columns: int) -> None:
        larger = np.zeros((rows, columns), dtype=np.float64)
        larger[: len(self._prefix), : self._prefix.shape[1]] = self._prefix
        self._prefix = larger
