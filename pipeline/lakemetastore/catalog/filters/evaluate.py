"""Conditions evaluated over all partitions of a table at once.

The Hive Metastore 3.1.3 has two ways. Its direct SQL compares text with string keys, integers with integer keys and
dates with date keys, where ``__HIVE_DEFAULT_PARTITION__`` and what is no number or date meets no comparison with a
number or date. If one comparison of the condition has other types, or is LIKE, the whole condition goes the second way,
which knows string keys, text and dates only and refuses all else. Here each comparison goes the way that knows it, so
that LIKE may stand beside comparisons of numbers; what no way knows is refused as by the second way.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import compress
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakemetastore.catalog.filters.columns import Distinct, KeyColumn, day
from lakemetastore.catalog.filters.patterns import like
from lakemetastore.catalog.filters.syntax import Comparison, Condition, Day, Every, Op, Some, Value
from lakemetastore.errors import MetaError

Mask = npt.NDArray[np.bool_]
_COMPARE: Mapping[Op, Callable[[Any, Any], Any]] = {
    Op.EQUAL: operator.eq,
    Op.UNEQUAL: operator.ne,
    Op.LESS: operator.lt,
    Op.AT_MOST: operator.le,
    Op.GREATER: operator.gt,
    Op.AT_LEAST: operator.ge,
}
_COMPARE_TEXT: Mapping[Op, Callable[[pa.StringArray, str], pa.BooleanArray]] = {
    Op.LESS: pc.less,
    Op.AT_MOST: pc.less_equal,
    Op.GREATER: pc.greater,
    Op.AT_LEAST: pc.greater_equal,
}
_REVERSED = {Op.LESS: Op.GREATER, Op.AT_MOST: Op.AT_LEAST, Op.GREATER: Op.LESS, Op.AT_LEAST: Op.AT_MOST}
_INTEGERS = frozenset({"tinyint", "smallint", "int", "bigint"})
_LOOSE_DATE = re.compile(r"\s*(\d{1,4})-(\d{1,2})-(\d{1,2})", re.ASCII)


def matching(condition: Condition | None, keys: Sequence[KeyColumn], count: int) -> npt.NDArray[np.int64]:
    """The positions of the partitions that meet a condition, ascending, (hits,).

    Args:
        condition: None is met by all.
        keys: the partition keys, each with ``count`` codes.
        count: the number of partitions.

    Raises MetaError for a key that the table does not have, and for comparisons that the Metastore refuses.
    """
    if condition is None:
        return np.arange(count, dtype=np.int64)
    by_name = {key.name: key for key in keys}
    comparisons = list(_comparisons(condition))
    if not all(_is_known(comparison, by_name) for comparison in comparisons):
        for comparison in comparisons:
            _check_text(comparison, by_name)
    terms = condition.terms if isinstance(condition, Every) else (condition,)
    first, rest = _by_cost(terms, by_name)
    if not first:
        return np.flatnonzero(_Evaluation(by_name).mask(condition))
    positions = np.flatnonzero(reduce(operator.and_, map(_Evaluation(by_name).mask, first)))
    if not rest:
        return positions
    left = {name: replace(key, codes=key.codes[positions]) for name, key in by_name.items()}
    return positions[_Evaluation(left).mask(Every(rest))]


def _by_cost(
    terms: tuple[Condition, ...], keys: Mapping[str, KeyColumn]
) -> tuple[tuple[Condition, ...], tuple[Condition, ...]]:
    """The terms that find one text, which is cheap and leaves few partitions for the others; the others."""
    cheap = [isinstance(t, Comparison) and t.op is Op.EQUAL and _key_of(t, keys).type == "string" for t in terms]
    return tuple(compress(terms, cheap)), tuple(term for term, first in zip(terms, cheap, strict=True) if not first)


def _comparisons(condition: Condition) -> Iterator[Comparison]:
    if isinstance(condition, Comparison):
        yield condition
    else:
        for term in condition.terms:
            yield from _comparisons(term)


def _key_of(comparison: Comparison, keys: Mapping[str, KeyColumn]) -> KeyColumn:
    key = keys.get(comparison.key.lower())
    if key is None:
        raise MetaError(f"Specified key <{comparison.key}> is not a partitioning key for the table")
    return key


def _is_known(comparison: Comparison, keys: Mapping[str, KeyColumn]) -> bool:
    key = keys.get(comparison.key.lower())
    if key is None:
        return False
    if key.type == "string":
        return not isinstance(comparison.value, int) and not (comparison.op is Op.LIKE and comparison.reversed)
    if comparison.op is Op.LIKE:
        return False
    if key.type == "date":
        return _as_day(comparison.value) is not None
    return isinstance(comparison.value, int) and key.type in _INTEGERS


def _check_text(comparison: Comparison, keys: Mapping[str, KeyColumn]) -> None:
    if _key_of(comparison, keys).type != "string" or isinstance(comparison.value, int):
        raise MetaError("Filtering is supported only on partition keys of type string")
    if comparison.op in (Op.EQUAL, Op.UNEQUAL) and not _text(comparison.value):
        raise MetaError(f"Partition spec is incorrect. {{{comparison.key}=}}")
    if comparison.op is Op.LIKE and comparison.reversed:
        raise MetaError(f"Value should be on the RHS for LIKE operator : Key <{comparison.key}>")


@dataclass
class _Evaluation:
    """One evaluation. The values of a key are looked at once, since other threads may add to its dictionary."""

    keys: Mapping[str, KeyColumn]
    seen: dict[str, Distinct] = field(default_factory=dict)

    def mask(self, condition: Condition) -> Mask:
        """Which partitions meet a condition, (partitions,)."""
        if isinstance(condition, Comparison):
            key = _key_of(condition, self.keys)
            if condition.op is Op.EQUAL and key.type == "string":
                code = key.dictionary.code(_text(condition.value))
                return np.equal(key.codes, -1 if code is None else code)
            return self._met(condition, key)[key.codes]
        join: Callable[[Mask, Mask], Mask] = operator.and_ if isinstance(condition, Every) else operator.or_
        return reduce(join, self._terms(condition))

    def _terms(self, condition: Every | Some) -> Iterator[Mask]:
        """The terms, with comparisons of one key put together before they are looked up by code."""
        listed: dict[str, list[str]] = {}
        met: dict[str, Mask] = {}
        listing, join = (Op.UNEQUAL, operator.and_) if isinstance(condition, Every) else (Op.EQUAL, operator.or_)
        for term in condition.terms:
            if not isinstance(term, Comparison):
                yield self.mask(term)
                continue
            key = _key_of(term, self.keys)
            if term.op is listing and key.type == "string":
                listed.setdefault(key.name, []).append(_text(term.value))
            else:
                by_value = self._met(term, key)
                met[key.name] = join(met[key.name], by_value) if key.name in met else by_value
        for name, texts in listed.items():
            key = self.keys[name]
            by_value = self._listed(key, texts)
            yield (~by_value if listing is Op.UNEQUAL else by_value)[key.codes]
        for name, by_value in met.items():
            yield by_value[self.keys[name].codes]

    def _met(self, comparison: Comparison, key: KeyColumn) -> Mask:
        """Whether each value of a key's dictionary meets a comparison, (values,)."""
        distinct, value = self._distinct(key), comparison.value
        op = _REVERSED.get(comparison.op, comparison.op) if comparison.reversed else comparison.op
        if op is Op.LIKE:
            return _mask_of(like(_text(value)).matches(distinct.texts))
        if key.type == "string":
            if op in (Op.EQUAL, Op.UNEQUAL):
                equal = self._listed(key, [_text(value)])
                return ~equal if op is Op.UNEQUAL else equal
            return _mask_of(_COMPARE_TEXT[op](distinct.texts, _text(value)))
        numbers, known = distinct.days if key.type == "date" else distinct.integers
        met: Mask = _COMPARE[op](numbers, _as_day(value) if key.type == "date" else value) & known
        return met

    def _listed(self, key: KeyColumn, texts: Sequence[str]) -> Mask:
        met = np.zeros(len(self._distinct(key).values), dtype=np.bool_)
        codes = [code for code in map(key.dictionary.code, texts) if code is not None and code < len(met)]
        met[codes] = True
        return met

    def _distinct(self, key: KeyColumn) -> Distinct:
        if key.name not in self.seen:
            self.seen[key.name] = key.dictionary.distinct()
        return self.seen[key.name]


def _mask_of(met: pa.BooleanArray) -> Mask:
    mask: Mask = met.to_numpy(zero_copy_only=False)
    return mask


def _text(value: Value) -> str:
    return value.text if isinstance(value, Day) else str(value)


def _as_day(value: Value) -> int | None:
    """The day of a date or of a text that begins with one, as Java's lenient parser reads it; None for all else."""
    if isinstance(value, Day):
        return day(value.text)
    match = _LOOSE_DATE.match(value) if isinstance(value, str) else None
    return day(f"{int(match[1]):04d}-{int(match[2]):02d}-{int(match[3]):02d}") if match else None
