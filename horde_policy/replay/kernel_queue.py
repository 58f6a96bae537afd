"""Compiled: the waiting requests. A slot holds those of one class, in a tree by queue order that knows sums of weights.

The queue order (``replay.md``): larger key first, then earlier created, then traffic row. Here a key is an int64 that grows
as the request stands further back. Trees are B+ trees: an entry of an inner node has the sum of its child's weights and a
lower bound of its child's entries; no leaf but the root is ever empty. Everything is O(log n) in what waits.
"""

from typing import Any

import numba as nb
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import types
from numba.extending import intrinsic

from horde_policy.replay.kernel_run import Run
from horde_policy.replay.kernel_types import (
    NODE_SIZE,
    STAT_FIRST,
    STAT_FIRST_ID,
    STAT_LAST,
    STAT_WEIGHT,
    Whole,
)

__all__ = ["ahead_in_slot", "goes_before", "insert_waiting", "lowest_bit", "new_leaf", "remove_waiting"]

HALF = NODE_SIZE // 2


@intrinsic
def lowest_bit(_context: Any, word: Any) -> Any:
    """Return the place of the lowest set bit of a word that is not 0."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.int64), generate


@nb.njit(error_model="numpy", forceinline=True)
def goes_before(s: Run, key: int, i: int, other_key: int, other: int) -> bool:
    """Return whether request i stands ahead of the other one."""
    if key != other_key:
        return key < other_key
    if s.created[i] != s.created[other]:
        return bool(s.created[i] < s.created[other])
    return i < other


@nb.njit(error_model="numpy", forceinline=True)
def new_leaf(s: Run) -> Whole:
    """Take a node from the free ones; it is an empty leaf."""
    s.nodes_free -= 1
    node = s.queue_free[s.nodes_free]
    s.queue_entries[node] = 0
    s.queue_leaf[node] = 1
    return node


@nb.njit(error_model="numpy", forceinline=True)
def entries_before(s: Run, node: int, key: int, i: int) -> Whole:
    """Return how many entries of the node do not stand behind request i."""
    place = s.queue_entries[node]
    first = node * NODE_SIZE
    while place > 0 and goes_before(s, key, i, s.queue_key[first + place - 1], s.queue_id[first + place - 1]):
        place -= 1
    return place


@nb.njit(error_model="numpy", forceinline=True)
def move_entry(s: Run, source: int, target: int) -> None:
    """Copy an entry of a node to another place."""
    s.queue_key[target] = s.queue_key[source]
    s.queue_weight[target] = s.queue_weight[source]
    s.queue_id[target] = s.queue_id[source]
    s.queue_child[target] = s.queue_child[source]


@nb.njit(error_model="numpy", forceinline=True)
def open_place(s: Run, node: int, place: int) -> Whole:
    """Shift the entries from ``place`` on by one; return the place's index in the arrays."""
    first = node * NODE_SIZE
    for at in range(first + s.queue_entries[node], first + place, -1):
        move_entry(s, at - 1, at)
    s.queue_entries[node] += 1
    return first + place


@nb.njit(error_model="numpy", forceinline=True)
def close_place(s: Run, node: int, place: int) -> None:
    """Take the entry at ``place`` out of the node."""
    first = node * NODE_SIZE
    s.queue_entries[node] -= 1
    for at in range(first + place, first + s.queue_entries[node]):
        move_entry(s, at + 1, at)


@nb.njit(error_model="numpy")
def split_child(s: Run, parent: int, place: int) -> None:
    """Split the full child at ``place`` of a parent that has room: its upper half becomes the next child."""
    at = parent * NODE_SIZE + place
    child = s.queue_child[at]
    right = new_leaf(s)
    s.queue_leaf[right] = s.queue_leaf[child]
    moved = 0
    for k in range(HALF):
        move_entry(s, child * NODE_SIZE + HALF + k, right * NODE_SIZE + k)
        moved += s.queue_weight[right * NODE_SIZE + k]
    s.queue_entries[child] = HALF
    s.queue_entries[right] = HALF
    s.queue_weight[at] -= moved
    new = open_place(s, parent, place + 1)
    s.queue_key[new] = s.queue_key[right * NODE_SIZE]
    s.queue_id[new] = s.queue_id[right * NODE_SIZE]
    s.queue_weight[new] = moved
    s.queue_child[new] = right


@nb.njit(error_model="numpy")
def grow_root(s: Run, root: int, weight: int) -> Whole:
    """Put a new root above a full one, and split that; ``weight`` is what the tree weighs."""
    above = new_leaf(s)
    s.queue_leaf[above] = 0
    s.queue_entries[above] = 1
    at = above * NODE_SIZE
    s.queue_key[at] = s.queue_key[root * NODE_SIZE]
    s.queue_id[at] = s.queue_id[root * NODE_SIZE]
    s.queue_weight[at] = weight
    s.queue_child[at] = root
    split_child(s, above, 0)
    return above


@nb.njit(error_model="numpy")
def insert_waiting(s: Run, slot: int, key: int, i: int, weight: int) -> None:
    """Put request i into the slot's tree and bring the slot's figures up to date; needs a node a level and one more."""
    stat = slot * 4
    node = s.queue_root[slot]
    empty = s.queue_entries[node] == 0
    if s.queue_entries[node] == NODE_SIZE:
        node = grow_root(s, node, s.queue_stat[stat + STAT_WEIGHT])
        s.queue_root[slot] = node
    while s.queue_leaf[node] == 0:
        place = max(entries_before(s, node, key, i) - 1, 0)
        child = s.queue_child[node * NODE_SIZE + place]
        if s.queue_entries[child] == NODE_SIZE:
            split_child(s, node, place)
            right = node * NODE_SIZE + place + 1
            if not goes_before(s, key, i, s.queue_key[right], s.queue_id[right]):
                place += 1
        s.queue_weight[node * NODE_SIZE + place] += weight
        node = s.queue_child[node * NODE_SIZE + place]
    at = open_place(s, node, entries_before(s, node, key, i))
    s.queue_key[at] = key
    s.queue_id[at] = i
    s.queue_weight[at] = weight
    s.queue_stat[stat + STAT_WEIGHT] += weight
    if empty or goes_before(s, key, i, s.queue_stat[stat + STAT_FIRST], s.queue_stat[stat + STAT_FIRST_ID]):
        s.queue_stat[stat + STAT_FIRST] = key
        s.queue_stat[stat + STAT_FIRST_ID] = i
    if empty or key > s.queue_stat[stat + STAT_LAST]:
        s.queue_stat[stat + STAT_LAST] = key


@nb.njit(error_model="numpy")
def drop_empty_nodes(s: Run, slot: int, node: int, depth: int) -> None:
    """Take an emptied leaf, and parents that become empty, out of the tree; a root with one child gives way to it."""
    while depth > 0 and s.queue_entries[node] == 0:
        s.queue_free[s.nodes_free] = node
        s.nodes_free += 1
        depth -= 1
        node = s.queue_path_node[depth]
        close_place(s, node, s.queue_path_entry[depth])
    root = s.queue_root[slot]
    while s.queue_leaf[root] == 0 and s.queue_entries[root] == 1:
        s.queue_free[s.nodes_free] = root
        s.nodes_free += 1
        root = s.queue_child[root * NODE_SIZE]
        s.queue_root[slot] = root


@nb.njit(error_model="numpy")
def remove_waiting(s: Run, slot: int, key: int, i: int, weight: int) -> bool:
    """Take request i out of the slot's tree; return whether nothing is left in it."""
    node = s.queue_root[slot]
    depth = 0
    while s.queue_leaf[node] == 0:
        place = max(entries_before(s, node, key, i) - 1, 0)
        s.queue_weight[node * NODE_SIZE + place] -= weight
        s.queue_path_node[depth] = node
        s.queue_path_entry[depth] = place
        depth += 1
        node = s.queue_child[node * NODE_SIZE + place]
    place = 0
    while s.queue_id[node * NODE_SIZE + place] != i:
        place += 1
    close_place(s, node, place)
    if depth > 0:
        drop_empty_nodes(s, slot, node, depth)
    stat = slot * 4
    s.queue_stat[stat + STAT_WEIGHT] -= weight
    first = s.queue_root[slot]
    last = first
    if s.queue_entries[first] == 0:
        return True
    while s.queue_leaf[first] == 0:
        first = s.queue_child[first * NODE_SIZE]
    while s.queue_leaf[last] == 0:
        last = s.queue_child[last * NODE_SIZE + s.queue_entries[last] - 1]
    s.queue_stat[stat + STAT_FIRST] = s.queue_key[first * NODE_SIZE]
    s.queue_stat[stat + STAT_FIRST_ID] = s.queue_id[first * NODE_SIZE]
    s.queue_stat[stat + STAT_LAST] = s.queue_key[last * NODE_SIZE + s.queue_entries[last] - 1]
    return False


@nb.njit(error_model="numpy")
def ahead_in_slot(s: Run, slot: int, key: int) -> Whole:
    """Return the weight of the slot's requests whose key is at most ``key``: an arrival stands behind all of its own key."""
    node = s.queue_root[slot]
    weight = 0
    while True:
        first = node * NODE_SIZE
        entries = s.queue_entries[node]
        if s.queue_leaf[node] != 0:
            for at in range(first, first + entries):
                if s.queue_key[at] > key:
                    break
                weight += s.queue_weight[at]
            return weight
        at = first
        while at + 1 < first + entries and s.queue_key[at + 1] <= key:
            weight += s.queue_weight[at]
            at += 1
        node = s.queue_child[at]
