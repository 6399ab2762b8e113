"""The numbers of the ranges into which sorted bounds divide texts, 8 bytes at a time.

The bounds are a tree. A node has bounds that begin with the same bytes; they are compared by the next 8 bytes, which
are one number (a *word*, filled up with zeros after a text's end). Bounds that have one word are a node below, so that
a prefix is compared once and not at every step.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from hudilake.compiled import BYTES, LONG, LONG_ROWS, LONGS, NOTHING, ULONG, ULONGS, compiled
from hudilake.format.layout.search_tree import fill_tree, rank, tree_height

_Bytes: TypeAlias = npt.NDArray[np.uint8]
_Longs: TypeAlias = npt.NDArray[np.int64]
_Ulongs: TypeAlias = npt.NDArray[np.uint64]
#: Bytes of texts, and the offsets of n texts in them, n + 1.
Texts: TypeAlias = tuple[_Bytes, _Longs]

_WORD: Final = 8
#: So few bounds are compared byte by byte.
_FEW: Final = 4
#: What a node says: its first bound, the bound after its last one, the bytes that they share, its first word, how many
#: words it has, and where their search tree begins.
_FIRST, _END, _SHARED, _WORDS, _COUNT, _TREE = 0, 1, 2, 3, 4, 5
_FIELDS: Final = 6


def text_ranges(values: Texts, bounds: Texts) -> _Longs:
    """How many bounds are not above each value, int64 of n.

    Args:
        values: n texts.
        bounds: at least one, ascending, no two equal.
    """
    count = len(bounds[1]) - 1
    # A node has two words or more, so there are fewer nodes than bounds; each word but those with a node is a bound's.
    nodes = np.zeros((count, _FIELDS), dtype=np.int64)
    words, trees = np.zeros(2 * count, dtype=np.uint64), np.zeros(4 * count, dtype=np.uint64)
    firsts, below = np.zeros(2 * count, dtype=np.int64), np.zeros(2 * count, dtype=np.int64)
    _build(*bounds, nodes, words, firsts, below, trees)
    found = np.empty(len(values[1]) - 1, dtype=np.int64)
    _search(*values, *bounds, nodes, words, firsts, below, trees, found)
    return found


@compiled(ULONG(BYTES, LONG, LONG))
def _word(data: _Bytes, at: int, end: int) -> np.uint64:
    """The 8 bytes from ``at`` on, the first one highest, zeros from ``end`` on."""
    value = np.uint64(0)
    if end - at >= _WORD:
        for place in range(_WORD):
            value = (value << np.uint64(8)) | np.uint64(data[at + place])
        return value
    for place in range(_WORD):
        value <<= np.uint64(8)
        if at + place < end:
            value |= np.uint64(data[at + place])
    return value


@compiled(LONG(BYTES, LONG, LONG, BYTES, LONG, LONG, LONG))
def _shared(left: _Bytes, left_at: int, left_end: int, right: _Bytes, right_at: int, right_end: int, known: int) -> int:
    """How many first bytes are equal, ``known`` of which are known to be."""
    most = min(left_end - left_at, right_end - right_at)
    count = known
    while count < most and left[left_at + count] == right[right_at + count]:
        count += 1
    return count


@compiled(NOTHING(BYTES, LONGS, LONG_ROWS, ULONGS, LONGS, LONGS, ULONGS))
def _build(
    data: _Bytes, offsets: _Longs, nodes: _Longs, words: _Ulongs, firsts: _Longs, below: _Longs, trees: _Ulongs
) -> None:
    """Fill the tree.

    Args:
        data, offsets: the bounds.
        nodes: the fields of each node.
        words: ascending within a node.
        firsts: the first bound of each word.
        below: the node of the bounds of a word, 0 for none.
        trees: of the words of each node, to search them.
    """
    nodes[0, _END] = len(offsets) - 1
    node, made, used, planted = 0, 1, 0, 0
    while node < made:
        first, end = nodes[node, _FIRST], nodes[node, _END]
        at, last = offsets[first], offsets[end - 1]
        shared = _shared(data, at, offsets[first + 1], data, last, offsets[end], nodes[node, _SHARED])
        nodes[node, _SHARED], nodes[node, _WORDS] = shared, used
        bound = first
        while bound < end:
            word, whole, start = _word(data, offsets[bound] + shared, offsets[bound + 1]), True, bound
            while bound < end and _word(data, offsets[bound] + shared, offsets[bound + 1]) == word:
                whole = whole and offsets[bound] + shared + _WORD <= offsets[bound + 1]
                bound += 1
            words[used], firsts[used], below[used] = word, start, 0
            if whole and bound - start > _FEW:
                nodes[made, _FIRST], nodes[made, _END], nodes[made, _SHARED] = start, bound, shared + _WORD
                below[used] = made
                made += 1
            used += 1
        count = used - nodes[node, _WORDS]
        nodes[node, _COUNT], nodes[node, _TREE] = count, planted
        fill_tree(words, nodes[node, _WORDS], count, trees, planted)
        planted += 1 << tree_height(count)
        node += 1


@compiled(LONG(BYTES, LONG, LONG, BYTES, LONGS, LONG, LONG, LONG))
def _bytewise(data: _Bytes, at: int, end: int, bounds: _Bytes, offsets: _Longs, low: int, high: int, known: int) -> int:
    """The number of the first bound above a value, from ``low`` to ``high``, all of which begin with ``known`` bytes of
    it."""
    while low < high:
        middle = (low + high) >> 1
        bound_at, bound_end = offsets[middle], offsets[middle + 1]
        shared = _shared(data, at, end, bounds, bound_at, bound_end, known)
        if bound_at + shared == bound_end or (at + shared < end and bounds[bound_at + shared] < data[at + shared]):
            low = middle + 1
        else:
            high = middle
    return low


@compiled(NOTHING(BYTES, LONGS, BYTES, LONGS, LONG_ROWS, ULONGS, LONGS, LONGS, ULONGS, LONGS))
def _search(
    data: _Bytes,
    offsets: _Longs,
    bounds: _Bytes,
    bound_offsets: _Longs,
    nodes: _Longs,
    words: _Ulongs,
    firsts: _Longs,
    below: _Longs,
    trees: _Ulongs,
    found: _Longs,
) -> None:
    """Go down the tree with each value."""
    for row in range(len(found)):
        at, end = offsets[row], offsets[row + 1]
        node, known = 0, 0
        while True:
            first, high, prefix = nodes[node, _FIRST], nodes[node, _END], nodes[node, _SHARED]
            bound_at = bound_offsets[first]
            shared = _shared(data, at, end, bounds, bound_at, bound_at + prefix, known)
            if shared < prefix:  # all bounds of the node are above the value, or none is
                less = at + shared == end or data[at + shared] < bounds[bound_at + shared]
                found[row] = first if less else high
                break
            word = _word(data, at + shared, end)
            count = nodes[node, _COUNT]
            above = rank(trees, nodes[node, _TREE], count, word)
            place = nodes[node, _WORDS] + above  # of the first word above the value's
            high = firsts[place] if above < count else high
            if above == 0 or words[place - 1] != word:
                found[row] = high
                break
            if not below[place - 1]:
                found[row] = _bytewise(data, at, end, bounds, bound_offsets, firsts[place - 1], high, shared)
                break
            node, known = below[place - 1], shared + _WORD
