"""Reads the flat messages of a chunk that look alike by templates, and lists the messages that are left."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, cast

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from binlake.decode.events import NO_POSITION, RowEvents
from binlake.decode.quarantine import Buffer, json_fault
from binlake.decode.slices import Slices
from binlake.decode.templates.envelope_head import MAX_ROW, EnvelopeScan
from binlake.decode.templates.reading import Bools, TemplatePass
from binlake.decode.templates.template import Layout, Path, Template, template_of
from binlake.decode.templates.value_kernel import ABSENT, FALSE, INT, NESTED, NULL, NUMBER, TEXT, TRUE

_I64 = npt.NDArray[np.int64]
_ANY = msgspec.json.Decoder().decode
_BAD = (msgspec.MsgspecError, RecursionError, UnicodeDecodeError)
_OP, _DELETED, _FILE, _POS, _ROW, _TS_MS, _SERVER_ID, _GTID = range(8)
_FIRST_COLUMN = 8
_OF_SOURCE = {"file": _FILE, "pos": _POS, "row": _ROW, "ts_ms": _TS_MS, "server_id": _SERVER_ID, "gtid": _GTID}
_NAMES = ("db", "table")
#: Members by whose values a message may be an envelope: not all that look alike are flat.
_TELLING = {"op", "source"}


@lru_cache(maxsize=8)
def _layout(prefix: str) -> Layout:
    head: dict[Path, int] = {
        (f"{prefix}{more}{name}",): slot for name, slot in _OF_SOURCE.items() for more in ("", "source_")
    }
    return Layout(
        head=head | {(f"{prefix}op",): _OP, (f"{prefix}deleted",): _DELETED},
        first_column=_FIRST_COLUMN,
        fixed=frozenset((f"{prefix}{more}{name}",) for name in _NAMES for more in ("", "source_")),
        row=(),
        depth=1,
        added=prefix,
    )


def scan_flats(
    payloads: Sequence[Buffer],
    at: Sequence[int],
    *,
    prefix: str,
    is_flat: Callable[[dict[str, Any]], bool],
    traced: bool,
    max_nesting: int,
) -> EnvelopeScan | None:
    """Read the flat messages that look alike; None if there are none.

    ``at``: the numbers that their events get. ``is_flat``: whether a decoded message is flat. ``traced``: with server
    and GTID.
    """

    def learn(message: Buffer, slots: dict[str, int]) -> Template | None:
        text = bytes(message)
        try:
            document = _ANY(text)
        except _BAD:
            return None
        if not (isinstance(document, dict) and prefix and is_flat(document)) or not _is_sure(document, prefix):
            return None
        return (
            None if json_fault(text, max_nesting) is not None else template_of(text, document, _layout(prefix), slots)
        )

    reading = TemplatePass.of(payloads, learn, _FIRST_COLUMN, {})
    if reading is None:
        return None
    good = reading.known & _sound(reading)
    good[[i for i in np.flatnonzero(good & _doubtful(reading)).tolist() if not _is_decodable(payloads[i])]] = False
    rows = np.flatnonzero(good)
    numbers = np.asarray(at, dtype=np.int64)[rows].tolist()
    return EnvelopeScan(rows, np.flatnonzero(~good), _events(reading, rows, numbers, prefix, traced=traced))


def _is_sure(document: Mapping[str, Any], prefix: str) -> bool:
    """Whether all messages with these members are flat, and none says a thing twice."""
    if not {f"{prefix}op", f"{prefix}deleted"} & document.keys() or document.keys() >= _TELLING:
        return False
    if any(prefix + name in document and f"{prefix}source_{name}" in document for name in (*_NAMES, *_OF_SOURCE)):
        return False
    return all(isinstance(_named(document, prefix, name), str | None) for name in _NAMES)


def _named(document: Mapping[str, Any], prefix: str, name: str) -> Any:  # noqa: ANN401 - JSON
    return document.get(f"{prefix}source_{name}", document.get(f"{prefix}{name}"))


def _sound(reading: TemplatePass) -> Bools:
    """Which messages have added fields that the typed decoder accepts."""
    value = reading.value
    sound = reading.is_one_of(_OP, NULL, TEXT) & reading.is_one_of(_DELETED, NULL, TEXT, TRUE, FALSE)
    for slot in (_FILE, _GTID):
        sound &= reading.is_one_of(slot, NULL, TEXT)
    for slot in (_POS, _ROW, _TS_MS, _SERVER_ID):
        sound &= reading.is_one_of(slot, NULL, INT)
    return np.asarray(sound & (value[_POS] >= 0) & (value[_ROW] >= 0) & (value[_ROW] <= MAX_ROW))


def _doubtful(reading: TemplatePass) -> Bools:
    """Which messages may have what the typed decoder refuses and the kernel takes: bytes that are no UTF-8, and numbers
    beyond a double, also inside of objects."""
    try:
        reading.joined.decode()
    except UnicodeDecodeError:
        return reading.known
    columns = reading.what[_FIRST_COLUMN:]
    return np.asarray(((columns == NUMBER) | (columns == NESTED)).any(axis=0))


def _is_decodable(message: Buffer) -> bool:
    try:
        _ANY(message)
    except _BAD:
        return False
    return True


def _events(reading: TemplatePass, rows: _I64, at: list[int], prefix: str, *, traced: bool) -> RowEvents:
    what, value = reading.what, reading.value
    said = reading.cells().texts(rows, {_DELETED: (TEXT,)})[_DELETED]
    deleted = pc.fill_null(pc.equal(said, "true"), False).to_numpy(zero_copy_only=False)
    deleted = deleted | (what[_DELETED, rows] == TRUE)
    databases, tables = (
        cast("list[str | None]", reading.by_template(lambda t, n=name: _named(t.document, prefix, n), rows))  # type: ignore[misc]
        for name in _NAMES
    )
    placed = (what[_FILE, rows] != ABSENT) & (what[_POS, rows] != ABSENT)
    files = [(file or "") if there else None for file, there in zip(reading.texts(_FILE, rows), placed, strict=True)]
    ops = [op or "" for op in reading.texts(_OP, rows)]
    return RowEvents(
        at=at,
        ops=["d" if gone else op for gone, op in zip(deleted.tolist(), ops, strict=True)] if deleted.any() else ops,
        databases=databases,
        tables=tables,
        files=files,
        positions=np.where(what[_POS, rows] == INT, value[_POS, rows], NO_POSITION).tolist(),
        rows=value[_ROW, rows].tolist(),
        source_ms=value[_TS_MS, rows].tolist(),
        servers=reading.numbers(_SERVER_ID, rows) if traced else None,
        gtids=reading.texts(_GTID, rows) if traced else None,
        images=Slices(reading.joined, reading.starts, reading.ends, rows, reading.cells()),
        befores=None,
    )
