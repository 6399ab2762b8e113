"""Bigtable's change records as Google's Dataflow templates write them (``ChangelogEntry``, JSON) -> tables of cells.

A message is one modification: a cell that was set, a range of a column's versions or a family that was deleted. Bytes
are base64 (the templates' format PROTOCOL_BUFFERS with JSON encoding, or the ``useBase64`` options of JSON) or, by the
settings, text. A garbage collection (``isGC``) is a delete like any other: the store has dropped the cells.

The order is the commit time, then the tie breaker. The modifications of one mutation have both in common and come in no
order, so a delete stands before a set: a mutation that replaces a column keeps the new value.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from binlake.decode.cells import CellKind
from binlake.decode.changes import SourceTable
from binlake.decode.messages.chunk import IGNORED, DecodeChunk, reject_invalid
from binlake.decode.options import BigtableText, EventFormat
from binlake.decode.quarantine import Fault, Reason
from binlake.decode.types.encoded_bytes import decode_base64
from binlake.decode.types.mysql_types import UTC_MICROSECONDS
from binlake.hbase.formats.cell_rows import CellRows, OneCellReader, RefusedCellError, add_cells, cell_table, require

_SIGN = b'"rowKey"'
#: The end of a range without an end, and the newest timestamp that the delete of a family masks.
_EVER = np.iinfo(np.int64).max
#: Bits of an ordering value for the tie breaker, above the one that tells sets from deletes.
_TIE_BITS = 10
_MAX_TIE = (1 << _TIE_BITS) - 1
_COMMIT_BITS = 63 - _TIE_BITS - 1
_LOST = "\N{REPLACEMENT CHARACTER}"
#: 64-bit numbers are text in the JSON of Protocol Buffers, and numbers in that of other writers.
_NUMBERS = ("commitTimestamp", "timestamp", "timestampFrom", "timestampTo")
_TEXTS = ("rowKey", "modType", "columnFamily", "column", "value", "sourceInstance", "sourceTable")
_REQUIRED = ("rowKey", "modType", "columnFamily", "commitTimestamp", "tieBreaker", "sourceInstance", "sourceTable")
_SET, _CELLS, _FAMILY = "SET_CELL", "DELETE_CELLS", "DELETE_FAMILY"


def _shape(number: pa.DataType) -> pj.ParseOptions:
    fields = [pa.field(name, pa.string()) for name in _TEXTS]
    fields += [pa.field(name, number) for name in _NUMBERS] + [pa.field("tieBreaker", pa.int64())]
    schema = pa.schema([pa.field("m", pa.struct(fields))])
    return pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")


_SHAPES = (_shape(pa.string()), _shape(pa.int64()))


def read(chunk: DecodeChunk) -> None:
    """Decode the chunk's records. With automatic detection, records of other formats are left."""

    def refuse(at: int, fault: Fault) -> None:
        value = chunk.records.values[at] or b""
        if not reject_invalid(chunk, at, value, EventFormat.BIGTABLE):
            chunk.refuse(at, fault)

    OneCellReader(lambda at: _take(chunk, at), refuse, _SIGN).read(chunk)


def _take(chunk: DecodeChunk, at: list[int]) -> None:
    """Add the cells of some records. Raises one of BAD_CELLS if one of them is bad."""
    fields = _parsed([chunk.records.values[i] or b"" for i in at])
    rows = _rows(chunk, fields, np.array(at, dtype=np.int64))
    for part in ("sourceInstance", "sourceTable"):
        sound = pc.and_(pc.not_equal(fields[part], ""), pc.invert(pc.match_substring(fields[part], "\0")))
        require(sound, Reason.UNKNOWN_MESSAGE, f"the {part} is empty or has a zero byte")
    names = pc.binary_join_element_wise(fields["sourceInstance"], fields["sourceTable"], "\0").dictionary_encode()
    of = names.indices.to_numpy()
    for number, name in enumerate(names.dictionary.to_pylist()):
        source = SourceTable(*name.split("\0"))
        if source in chunk.options.ignored_tables:
            chunk.decoded.count_filtered(source, IGNORED, int((of == number).sum()))
        else:
            add_cells(chunk, source, rows if len(names.dictionary) == 1 else rows.where(of == number))


def _parsed(messages: list[bytes]) -> dict[str, pa.Array]:
    """The members of n messages as arrays of n. Raises as ``_take``."""
    texts = b'{"m":' + b'}\n{"m":'.join(messages) + b"}"
    reading = pj.ReadOptions(use_threads=False, block_size=len(texts) + 1)
    try:
        table = pj.read_json(pa.BufferReader(texts), reading, _SHAPES[0])
    except pa.ArrowException:
        table = pj.read_json(pa.BufferReader(texts), reading, _SHAPES[1])
    structs = table.column("m").combine_chunks()
    if len(structs) != len(messages):
        raise RefusedCellError(Reason.UNKNOWN_MESSAGE, "the message is no JSON object")
    fields = {field.name: column for field, column in zip(structs.type, structs.flatten(), strict=True)}
    for name in _REQUIRED:
        require(fields[name].is_valid(), Reason.UNKNOWN_MESSAGE, f"the message has no {name}")
    return fields | {name: fields[name].cast(pa.int64()) for name in _NUMBERS}


def _rows(chunk: DecodeChunk, fields: dict[str, pa.Array], at: npt.NDArray[np.int64]) -> CellRows:
    """The cell of each message. Raises as ``_take``."""
    types, commits, ties = fields["modType"], fields["commitTimestamp"], fields["tieBreaker"]
    sets, family = pc.equal(types, _SET), pc.equal(types, _FAMILY)
    require(pc.is_in(types, pa.array([_SET, _CELLS, _FAMILY])), Reason.UNKNOWN_OP, "an unknown modType", types)
    for name, needed in (("column", pc.invert(family)), ("timestamp", sets), ("value", sets)):
        has = pc.or_(pc.invert(needed), fields[name].is_valid())
        require(has, Reason.UNKNOWN_MESSAGE, f"the message has no {name}")
    in_range = pc.and_(pc.greater_equal(commits, 0), pc.less(commits, 1 << _COMMIT_BITS))
    require(in_range, Reason.ORDER_OUT_OF_RANGE, "a commitTimestamp does not fit the ordering value", commits)
    start = pc.fill_null(fields["timestampFrom"], 0)
    require(pc.greater_equal(start, 0), Reason.BAD_VALUE, "a timestampFrom is negative", start)
    ends = pc.fill_null(fields["timestampTo"], _EVER)
    ranges = pc.binary_join_element_wise(CellKind.DELETE_RANGE.value, start.cast(pa.string()), ":")
    cells = cell_table(
        _bytes(chunk, fields, "rowKey"),
        fields["columnFamily"].cast(pa.binary()),
        pc.if_else(family, b"", pc.fill_null(_bytes(chunk, fields, "column"), b"")),
        pc.if_else(sets, fields["timestamp"], pc.if_else(family, _EVER, ends)),
        pc.if_else(sets, CellKind.PUT.value, pc.if_else(family, CellKind.DELETE_FAMILY.value, ranges)),
        _bytes(chunk, fields, "value"),
        commits.cast(UTC_MICROSECONDS),
    )
    tie = np.clip(ties.to_numpy(), 0, _MAX_TIE)
    orders = (commits.to_numpy() << (_TIE_BITS + 1)) | (tie << 1) | sets.to_numpy(zero_copy_only=False)
    return CellRows(cells, at, np.zeros(len(at), dtype=np.int32), orders, commits.to_numpy() // 1000)


def _bytes(chunk: DecodeChunk, fields: dict[str, pa.Array], name: BigtableText) -> pa.Array:
    """A member of bytes; null where it is absent."""
    texts = fields[name]
    if name not in chunk.options.bigtable_text:
        return decode_base64(texts)
    whole = pc.invert(pc.match_substring(texts, _LOST))
    lost = f"{name} lost bytes when the template made text of it; let the template write base64"
    require(pc.fill_null(whole, True), Reason.BAD_VALUE, lost)
    return texts.cast(pa.binary())
