"""The record keys that may pass a filter, and their buckets."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Context, Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudilake.format.definition.bucketing import Bucketing, buckets_of
from hudilake.format.definition.config import PARTITION_BUCKETS, TableConfig
from hudilake.format.definition.key_change import says_key
from hudilake.format.definition.keys import key_text, record_keys
from hudilake.format.definition.kind import BUCKET_ENGINE
from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.read.filters.expressions import And, Compare, Constant, Filter, In, Op, Or, Value
from hudilake.read.filters.literals import members

#: The largest number of keys that are looked up one by one.
MAX_KEYS = 10_000
_KEYGENERATOR = "hoodie.table.keygenerator.type"
_HASH_FIELD = "hoodie.bucket.index.hash.field"
#: Key generators that spell a single key field as its bare value; others may put ``name:`` before it.
_BARE = ("SIMPLE", "SIMPLE_AVRO", "NON_PARTITION", "NON_PARTITION_AVRO")
_WIDE = Context(prec=80)


@dataclass(frozen=True)
class KeyLookup:
    """``keys``: string array of the only record keys that may pass, ascending, none twice; at most MAX_KEYS."""

    keys: pa.Array

    def buckets(self, config: TableConfig) -> KeyBuckets | None:
        """The buckets of the keys; None for a table without this bucket index."""
        return KeyBuckets(self.keys, config.hash_fields, config.bucketing) if _says_buckets(config) else None


def _says_buckets(config: TableConfig) -> bool:
    """Whether the properties name the bucket index as binlake reads it."""
    properties = config.properties()
    if not says_key(config) or not config.bucket_count or properties.get("hoodie.index.type") != "BUCKET":
        return False
    if properties.get(BUCKET_ENGINE) != config.kind.properties().get(BUCKET_ENGINE):
        return False
    return PARTITION_BUCKETS not in config.extra and properties.get(_HASH_FIELD) == ",".join(config.hash_fields)


@dataclass(frozen=True)
class KeyBuckets:
    """The buckets that may hold some record keys, by partition.

    ``keys``: string array. ``fields``: those whose values decide the bucket.
    """

    keys: pa.Array
    fields: tuple[str, ...]
    bucketing: Bucketing
    _known: dict[Bucketing, frozenset[int]] = field(default_factory=dict)

    def of(self, partition_path: str) -> frozenset[int]:
        """The buckets of the keys in a partition."""
        rule = self.bucketing.of(partition_path)
        if rule not in self._known:
            buckets = buckets_of(rule, self.keys, self.fields, partition_path)
            self._known[rule] = frozenset(np.unique(buckets).tolist())
        return self._known[rule]


def key_lookup(part: Filter, config: TableConfig, schema: pa.Schema, *, by_fields: bool = True) -> KeyLookup | None:
    """The record keys that a filter binds: by ``_hoodie_record_key``, or by all record key fields.

    Args:
        part: normalised (``expressions.normalised``).
        config: the table's.
        schema: its columns.
        by_fields: whether the record key fields are those of all file slices in question.

    None if the filter does not bind them, binds too many, or the keys' text depends on the writer. Raises
    UnsupportedError for a literal that does not compare with its column.
    """
    direct = bound_values(part, RECORD_KEY_FIELD)
    if direct is not None:
        return _lookup(members(pa.string(), tuple(direct)))
    if not by_fields or not says_key(config):
        return None
    columns = _bound_texts(part, config.record_key_fields, schema)
    return None if columns is None else _lookup(_spelled(config, columns))


def index_buckets(part: Filter, config: TableConfig, schema: pa.Schema) -> KeyBuckets | None:
    """The buckets of the rows that a filter may pass, if it binds the fields that are hashed and not the whole key.

    Arguments and errors as ``key_lookup``. None also where a value holds a comma, by which Hudi may read another value
    out of the record key than was written.
    """
    if not config.index_fields or not _says_buckets(config):
        return None
    columns = _bound_texts(part, config.index_fields, schema)
    if columns is None or any(pc.any(pc.match_substring(column, ",")).as_py() for column in columns):
        return None
    return KeyBuckets(_combined(config.index_fields, columns), config.index_fields, config.bucketing)


def _bound_texts(part: Filter, names: Sequence[str], schema: pa.Schema) -> list[pa.Array] | None:
    """The texts of the values that a filter binds some columns to; None if it does not, or binds too many."""
    columns = []
    for name in names:
        values = bound_values(part, name)
        if values is None or name not in schema.names or not _has_known_texts(schema.field(name).type):
            return None
        columns.append(_texts(members(schema.field(name).type, tuple(values))))
    many = np.prod([len(column) for column in columns], dtype=float) > MAX_KEYS
    return None if many or not columns else columns


def _lookup(keys: pa.Array) -> KeyLookup | None:
    return KeyLookup(pc.unique(keys).sort()) if len(keys) <= MAX_KEYS else None


def _has_known_texts(kind: pa.DataType) -> bool:
    """Whether all key generators write a value as the same text; times have several forms."""
    checks = (pa.types.is_integer, pa.types.is_decimal, pa.types.is_string, pa.types.is_boolean)
    return kind == pa.date32() or any(check(kind) for check in checks)


def _texts(values: pa.Array) -> pa.Array:
    """Every text that a writer may have made of the values, string array: a decimal has the scale that its column had
    when it was written, and scales may have grown."""
    if not pa.types.is_decimal(values.type):
        return key_text(values)
    steps = [Decimal(1).scaleb(-scale) for scale in range(values.type.scale + 1)]
    spelled = ((value, value.quantize(step, context=_WIDE)) for value in values.to_pylist() for step in steps)
    return pa.array([str(text) for value, text in spelled if text == value], pa.string())


def _spelled(config: TableConfig, columns: list[pa.Array]) -> pa.Array:
    """The record keys of all combinations of the columns' texts, in every form the table may use."""
    keys = _combined(config.record_key_fields, columns)
    if len(columns) > 1 or config.properties().get(_KEYGENERATOR) in _BARE:
        return keys
    (name,) = config.record_key_fields
    return pa.concat_arrays([keys, pc.binary_join_element_wise(pa.scalar(f"{name}:"), keys, "")])


def _combined(names: Sequence[str], columns: list[pa.Array]) -> pa.Array:
    """The record keys of all combinations of the columns' texts."""
    rows = list(itertools.product(*(range(len(column)) for column in columns)))
    picked = [column.take(pa.array([row[i] for row in rows], pa.int64())) for i, column in enumerate(columns)]
    return record_keys(pa.Table.from_arrays(picked, names=list(names)), names)


def bound_values(part: Filter, column: str) -> set[Value] | None:
    """The only values of a column that may pass a normalised filter; None if it does not bind them.

    For several columns of one filter the combinations of their values are a superset of what passes.
    """
    if isinstance(part, And):
        bound = [values for inner in part.parts if (values := bound_values(inner, column)) is not None]
        return min(bound, key=len, default=None)
    if isinstance(part, Or):
        either = [bound_values(inner, column) for inner in part.parts]
        return None if any(v is None for v in either) else set().union(*(v for v in either if v is not None))
    if isinstance(part, Compare) and part.column == column and part.op is Op.EQ:
        return {part.value}
    if isinstance(part, In) and part.column == column and not part.negated:
        return set(part.values)
    return set() if part == Constant(False) else None
