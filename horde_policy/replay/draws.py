"""The deterministic draw that fills assigned fields: a number in [0, 1) of a salt and a key, and of nothing else.

``u(salt, key) = int(first 8 bytes of sha256("salt|key"), big endian) / 2**64`` (traces.md §4). Filtering, sorting, thinning
and chunked reading cannot change it. Millions of keys that end in a row number are hashed by a compiled kernel on
all cores, sixteen side by side; the plain function beside it gives the same numbers.
"""

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256

import numba
import numpy as np
import numpy.typing as npt

__all__ = ["ROUND_CONSTANTS", "u", "u_of_keys", "u_of_rows"]

Draws = npt.NDArray[np.float64]

LANES = 16
"""Rows hashed side by side: so many 32-bit numbers the compiler turns into wide instructions (measured; 8 it does not)."""
ONE_BLOCK_BYTES = 55
"""What one block of SHA-256 holds besides its padding."""
COMPILED_FROM_ROWS = 50_000
"""Below this the plain function is done before the kernel is loaded."""

_START = np.array(
    [0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19], dtype=np.uint32
)


def _round_constants() -> npt.NDArray[np.uint32]:
    """Return SHA-256's 64 constants: the first 32 bits of the fractions of the cube roots of the first 64 primes."""
    primes = [n for n in range(2, 312) if all(n % d for d in range(2, int(n**0.5) + 1))]
    constants = []
    for prime in primes:
        # the largest whole r with r³ ≤ prime · 2⁹⁶ is the cube root with 32 binary places
        low, high = 0, 1 << 36
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if middle**3 <= prime << 96 else (low, middle)
        constants.append(low & 0xFFFFFFFF)
    return np.array(constants, dtype=np.uint32)


ROUND_CONSTANTS = _round_constants()
"""Of SHA-256, computed from what they are."""


def u(salt: str, key: str) -> float:
    """Return the draw of one salt and key.

    >>> round(u("requester", "azure2023_conv|0"), 6), round(u("max_tokens", "burstgpt1|0"), 6)
    (0.81723, 0.359119)
    """
    return int.from_bytes(sha256(f"{salt}|{key}".encode()).digest()[:8], "big") / 2**64


def u_of_keys(salt: str, keys: Iterable[str]) -> Draws:
    """Return the draws of many keys, in their order."""
    prefix = f"{salt}|".encode()
    heads = [int.from_bytes(sha256(prefix + key.encode()).digest()[:8], "big") for key in keys]
    draws: Draws = np.array(heads, dtype=np.uint64) / 2.0**64
    return draws


def u_of_rows(salt: str, trace: str, rows: npt.NDArray[np.int64]) -> Draws:
    """Return the draws of the keys ``trace|row``.

    >>> u_of_rows("client", "azure2023_conv", np.array([0, 1])).round(6).tolist()
    [0.502821, 0.752237]
    """
    prefix = f"{salt}|{trace}|".encode()
    small = len(rows) < COMPILED_FROM_ROWS
    if small or rows.min() < 0 or len(prefix) + len(str(rows.max())) > ONE_BLOCK_BYTES:
        return u_of_keys(salt, (f"{trace}|{row}" for row in rows.tolist()))
    heads = np.empty(len(rows), dtype=np.uint64)
    cores = os.cpu_count() or 1
    block = np.frombuffer(prefix, dtype=np.uint8)
    parts = zip(np.array_split(np.ascontiguousarray(rows), cores), np.array_split(heads, cores), strict=True)
    with ThreadPoolExecutor(cores) as threads:
        jobs = [threads.submit(_hash_rows, block, some, into, ROUND_CONSTANTS, _START) for some, into in parts]
        for job in jobs:
            job.result()
    draws: Draws = heads / 2.0**64
    return draws


@numba.njit(cache=True, nogil=True)
def _rotated(x, places):  # type: ignore[no-untyped-def]
    return np.uint32(np.uint32(x >> np.uint32(places)) | np.uint32(x << np.uint32(32 - places)))


@numba.njit(cache=True, nogil=True)
def _fill_block(prefix, row, block, words, lane):  # type: ignore[no-untyped-def]
    """Write prefix, decimal row and padding as the first 16 words of one lane's only block."""
    block[:] = 0
    size = len(prefix)
    block[:size] = prefix
    rest = row // 10
    digits = 1
    while rest > 0:
        digits += 1
        rest //= 10
    rest = row
    for place in range(digits):
        block[size + digits - 1 - place] = np.uint8(48 + rest % 10)
        rest //= 10
    size += digits
    block[size] = np.uint8(0x80)
    for i in range(16):
        upper = (np.uint32(block[4 * i]) << np.uint32(24)) | (np.uint32(block[4 * i + 1]) << np.uint32(16))
        words[i, lane] = upper | (np.uint32(block[4 * i + 2]) << np.uint32(8)) | np.uint32(block[4 * i + 3])
    words[15, lane] = np.uint32(size * 8)


@numba.njit(cache=True, nogil=True)
def _spread(words):  # type: ignore[no-untyped-def]
    """Fill words 16 to 63 of every lane from the first 16."""
    for t in range(16, 64):
        old, near, some, last, new = words[t - 16], words[t - 15], words[t - 7], words[t - 2], words[t]
        for i in range(LANES):
            x, y = near[i], last[i]
            s0 = _rotated(x, 7) ^ _rotated(x, 18) ^ (x >> np.uint32(3))
            s1 = _rotated(y, 17) ^ _rotated(y, 19) ^ (y >> np.uint32(10))
            new[i] = np.uint32(old[i] + s0 + some[i] + s1)


@numba.njit(cache=True, nogil=True)
def _hash_rows(prefix, rows, heads, constants, start):  # type: ignore[no-untyped-def]
    """Write the first 8 bytes of sha256(prefix + decimal row) of each row into ``heads``."""
    block = np.zeros(64, dtype=np.uint8)
    words = np.zeros((64, LANES), dtype=np.uint32)
    none = np.zeros(LANES, dtype=np.uint32)
    a, b, c, d = none.copy(), none.copy(), none.copy(), none.copy()
    e, f, g, h = none.copy(), none.copy(), none.copy(), none.copy()
    for first in range(0, len(rows), LANES):
        count = min(LANES, len(rows) - first)
        for lane in range(count):
            _fill_block(prefix, rows[first + lane], block, words, lane)
        _spread(words)
        a[:], b[:], c[:], d[:] = start[0], start[1], start[2], start[3]
        e[:], f[:], g[:], h[:] = start[4], start[5], start[6], start[7]
        for t in range(64):
            now, constant = words[t], constants[t]
            # numba widens sums of 32-bit numbers to 64 bits: cut back, as the rule asks; narrow lanes go side by side
            for i in range(LANES):
                w, x, y, z = a[i], b[i], c[i], e[i]
                s1 = _rotated(z, 6) ^ _rotated(z, 11) ^ _rotated(z, 25)
                s0 = _rotated(w, 2) ^ _rotated(w, 13) ^ _rotated(w, 22)
                added = np.uint32(h[i] + s1 + ((z & f[i]) ^ (~z & g[i])) + constant + now[i])
                h[i], g[i], f[i], e[i] = g[i], f[i], z, np.uint32(d[i] + added)
                d[i], c[i], b[i], a[i] = y, x, w, np.uint32(added + s0 + ((w & x) ^ (w & y) ^ (x & y)))
        for lane in range(count):
            high, low = np.uint32(a[lane] + start[0]), np.uint32(b[lane] + start[1])
            heads[first + lane] = (np.uint64(high) << np.uint64(32)) | np.uint64(low)
