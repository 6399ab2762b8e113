"""The values of the partition columns in a partition path: the inverse of ``keys.PartitionLayout``.

A path has the values only if it is made from the columns' own text: not with a key generator that formats times or runs
its own code, and only for types with the same text in every writer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudilake.format.definition.config import TableConfig
from hudilake.format.definition.keys import DEFAULT_PARTITION, PartitionLayout, escape_partition_value
from hudilake.read.filters.bounds import ColumnBounds

_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_KEYGENERATOR = "hoodie.table.keygenerator.type"
_KEYGENERATOR_CLASS = "hoodie.table.keygenerator.class"
_PLAIN_GENERATORS = ("SIMPLE", "SIMPLE_AVRO", "COMPLEX", "COMPLEX_AVRO", "NON_PARTITION", "NON_PARTITION_AVRO")
#: Properties that change the form of Hudi's paths.
_OTHER_SPELLINGS = ("hoodie.datasource.write.slash.separated.date.partitioning",)


def unescape_partition_value(text: str) -> str:
    """The inverse of ``keys.escape_partition_value``."""
    return _ESCAPE.sub(lambda match: chr(int(match.group(1), 16)), text)


def path_values(path: str, layout: PartitionLayout) -> list[str] | None:
    """The texts of the partition fields in a path, in the fields' order, DEFAULT_PARTITION for null or empty.

    None for a path of another layout, or that looks like one: a missing property means the style without names.
    """
    segments = path.split("/")
    if len(segments) != len(layout.fields):
        return None
    values = []
    for name, segment in zip(layout.fields, segments, strict=True):
        if layout.hive_style != segment.startswith(f"{name}="):
            return None
        text = segment[len(name) + 1 :] if layout.hive_style else segment
        value = unescape_partition_value(text) if layout.url_encode else text
        if layout.url_encode and escape_partition_value(value) != text:
            return None
        values.append(value)
    return values


def plain_layout(config: TableConfig) -> PartitionLayout | None:
    """The layout of the table's partition paths; None if they are not made from the columns' own texts."""
    properties = config.properties()
    if properties.get(_KEYGENERATOR) not in _PLAIN_GENERATORS or _KEYGENERATOR_CLASS in properties:
        return None
    if any(properties.get(name) == "true" for name in _OTHER_SPELLINGS) or any(
        ":" in f for f in config.partition_fields
    ):
        return None
    return config.layout


def partition_bounds(paths: Sequence[str], config: TableConfig, schema: pa.Schema) -> Mapping[str, ColumnBounds]:
    """The bounds of the partition columns for the rows of n paths, as bounds over n "files".

    Args:
        paths: partition paths.
        config: the table's.
        schema: its columns.
    """
    layout = plain_layout(config)
    if layout is None:
        return {}
    values = [path_values(path, layout) for path in paths]
    bounds = {}
    for i, name in enumerate(layout.fields):
        if name in schema.names and _says_itself(schema.field(name).type):
            texts = [None if row is None else row[i] for row in values]
            bounds[name] = _column(schema.field(name).type, texts)
    return bounds


def _says_itself(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind) or kind == pa.date32()
    )


def _column(kind: pa.DataType, texts: list[str | None]) -> ColumnBounds:
    """``texts``: per path its text; None if the path has no value. Null and the empty string have the same path as the
    text DEFAULT_PARTITION itself."""
    text = pa.array(texts, pa.string())
    default = np.asarray(pc.fill_null(pc.equal(text, DEFAULT_PARTITION), False).to_numpy(zero_copy_only=False))
    if pa.types.is_string(kind):
        low = pc.if_else(pc.equal(text, DEFAULT_PARTITION), "", text)
        silent = text.is_null().to_numpy(zero_copy_only=False)
        return ColumnBounds(kind, low, text, np.ones(len(text), dtype=np.bool_), default | silent)
    values = _parsed(kind, text)
    silent = values.is_null().to_numpy(zero_copy_only=False)
    return ColumnBounds(kind, values, values, ~default, silent)


def _parsed(kind: pa.DataType, text: pa.Array) -> pa.Array:
    """The values of these texts; null for a text that is no value."""
    try:
        values = text.cast(kind)
    except pa.ArrowException:
        if len(text) <= 1:
            return pa.nulls(len(text), kind)
        middle = len(text) // 2
        return pa.concat_arrays([_parsed(kind, text[:middle]), _parsed(kind, text[middle:])])
    return pc.if_else(pc.equal(values.cast(pa.string()), text), values, pa.scalar(None, kind))
