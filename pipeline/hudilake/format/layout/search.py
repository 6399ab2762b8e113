"""The numbers of the ranges into which sorted bounds divide values."""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudilake.compiled import BYTES, LONG, LONG_ROWS, LONGS, NOTHING, ULONG, ULONGS, compiled
from hudilake.format.definition.xxhash32 import utf8_of

# The numbers of the ranges into which sorted bounds divide texts, 8 bytes at a time.
#
# The bounds are a tree. A node has bounds that begin with the same bytes; they are compared by the next 8 bytes, which
# are one number (a *word*, filled up with zeros after a text's end). Bounds that have one word are a node below, so
# that a prefix is compared once and not at every step.

# Sorted numbers in the order in which a binary search meets them, so that it needs no jumps that a processor guesses.
#
# Measured with 8191 numbers: 16 ns a search, against 260 ns of ``numpy.searchsorted`` on values in random order.

_Longs: TypeAlias = npt.NDArray[np.int64]
_Ulongs: TypeAlias = npt.NDArray[np.uint64]
_GREATEST: Final = np.uint64(0xFFFFFFFFFFFFFFFF)
_ONE: Final = np.uint64(1)


@compiled(LONG(LONG))
def tree_height(count: int) -> int:
    """The steps of a search among so many numbers; their tree has ``1 << height`` places."""
    height = 0
    while count >> height:
        height += 1
    return height


@compiled(NOTHING(ULONGS, LONG, LONG, ULONGS, LONG))
def fill_tree(numbers: _Ulongs, first: int, count: int, tree: _Ulongs, start: int) -> None:
    """The tree of ``count`` numbers from ``first`` on.

    Args:
        numbers: ascending.
        tree: is filled from ``start`` on. The numbers below that at place p are at 2p, those above at 2p + 1.
    """
    size = 1 << tree_height(count)
    width = 1
    while width < size:
        step = size // (2 * width)
        for place in range(width):
            number = step * (2 * place + 1) - 1
            tree[start + width + place] = numbers[first + number] if number < count else _GREATEST
        width *= 2


@compiled(LONG(ULONGS, LONG, LONG, ULONG))
def rank(tree: _Ulongs, start: int, count: int, value: np.uint64) -> int:
    """How many of a tree's ``count`` numbers are not above the value."""
    place, height = _ONE, tree_height(count)
    for _ in range(height):
        place = (place << _ONE) + np.uint64(tree[np.uint64(start) + place] <= value)
    return min(int(place) - (1 << height), count)


_Bytes: TypeAlias = npt.NDArray[np.uint8]
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
    ranges = np.empty(len(values[1]) - 1, dtype=np.int64)
    _search(*values, *bounds, nodes, words, firsts, below, trees, ranges)
    return ranges


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
        begin, last = offsets[first], offsets[end - 1]
        shared = _shared(data, begin, offsets[first + 1], data, last, offsets[end], nodes[node, _SHARED])
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
        begin, end = offsets[row], offsets[row + 1]
        node, known = 0, 0
        while True:
            first, high, prefix = nodes[node, _FIRST], nodes[node, _END], nodes[node, _SHARED]
            bound_at = bound_offsets[first]
            shared = _shared(data, begin, end, bounds, bound_at, bound_at + prefix, known)
            if shared < prefix:  # all bounds of the node are above the value, or none is
                less = begin + shared == end or data[begin + shared] < bounds[bound_at + shared]
                found[row] = first if less else high
                break
            word = _word(data, begin + shared, end)
            count = nodes[node, _COUNT]
            above = rank(trees, nodes[node, _TREE], count, word)
            place = nodes[node, _WORDS] + above  # of the first word above the value's
            high = firsts[place] if above < count else high
            if above == 0 or words[place - 1] != word:
                found[row] = high
                break
            if not below[place - 1]:
                found[row] = _bytewise(data, begin, end, bounds, bound_offsets, firsts[place - 1], high, shared)
                break
            node, known = below[place - 1], shared + _WORD


def ranges_of(values: pa.Array, bounds: pa.Array) -> _Longs:
    """How many bounds are not above each value, int64 of n; anything where a value is null.

    Args:
        values: n values: uint64 or large_binary, as ``comparable`` makes them.
        bounds: of the same type, ascending, without nulls and duplicates.
    """
    if not len(bounds):
        return np.zeros(len(values), dtype=np.int64)
    if values.type != pa.uint64():
        return text_ranges(utf8_of(values), utf8_of(bounds))
    marks = np.array(bounds.to_numpy(), dtype=np.uint64)
    tree = np.empty(1 << tree_height(len(marks)), dtype=np.uint64)
    fill_tree(marks, 0, len(marks), tree, 0)
    ranges = np.empty(len(values), dtype=np.int64)
    _search_numbers(np.array(values.fill_null(0).to_numpy(), dtype=np.uint64), tree, len(marks), ranges)
    return ranges


@compiled(NOTHING(ULONGS, ULONGS, LONG, LONGS))
def _search_numbers(values: _Ulongs, tree: _Ulongs, count: int, found: _Longs) -> None:
    for row in range(len(values)):
        found[row] = rank(tree, 0, count, values[row])
