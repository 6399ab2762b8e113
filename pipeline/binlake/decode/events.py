"""Row events of a chunk as columns of plain lists, independent of their form, and their order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import UNSET

from binlake.decode import order
from binlake.decode.changes import FILE_BITS, POSITION_BITS, UNKNOWN_PLACE, SourceTable
from binlake.decode.options import DecodeOptions
from binlake.decode.quarantine import Buffer
from binlake.decode.slices import Slices, selected

_I64 = npt.NDArray[np.int64]
NO_POSITION = -1
NO_PLACE = -2


@dataclass
class RowEvents:
    """Parallel lists, one entry for one record that changes a row (or truncates a table).

    Attributes:
        at: indices of the records in the chunk, ascending.
        ops: Debezium's letter. ``d`` also for flat records marked as deleted; "" for a flat record without one.
        databases, tables: the source's names; None where the message does not have them.
        files, positions: binlog place. "" and NO_POSITION where it is null; None as file where a flat record has no
            place fields at all.
        rows, source_ms: row in the event; source.ts_ms, 0 if unknown.
        servers, gtids: None when no epoch depends on them.
        images: the row of the event: the after image, or the before image of a delete.
        befores: before images of envelopes; None for flat records.
    """

    at: list[int]
    ops: list[str]
    databases: list[str | None]
    tables: list[str | None]
    files: list[str | None]
    positions: list[int]
    rows: list[int]
    source_ms: list[int]
    servers: list[int | None] | None
    gtids: list[str | None] | None
    images: list[Buffer] | Slices
    befores: list[Buffer] | Slices | None

    def __len__(self) -> int:
        return len(self.at)

    @staticmethod
    def none(*, traced: bool) -> RowEvents:
        """Empty lists. ``traced``: with servers and GTIDs."""
        return RowEvents([], [], [], [], [], [], [], [], [] if traced else None, [] if traced else None, [], [])

    def add_envelopes(self, envelopes: list[Any], at: Sequence[int]) -> None:
        """Add the events of decoded envelopes."""
        sources, ops = [e.source for e in envelopes], [e.op for e in envelopes]
        self.at += at
        self.ops += ops
        self.databases += [s.db for s in sources]
        self.tables += [s.table for s in sources]
        self.files += [s.file for s in sources]
        self.positions += [s.pos for s in sources]
        self.rows += [s.row for s in sources]
        self.source_ms += [s.ts_ms for s in sources]
        if self.servers is not None and self.gtids is not None:
            self.servers += [s.server_id for s in sources]
            self.gtids += [s.gtid for s in sources]
        images = [e.before if op == "d" else e.after for e, op in zip(envelopes, ops, strict=True)]
        self.add_images(images, [e.before for e in envelopes])

    def add_images(self, images: Sequence[Buffer], befores: Sequence[Buffer]) -> None:
        """Add the row images of events; the caller adds to the other lists."""
        assert isinstance(self.images, list)
        assert isinstance(self.befores, list)
        self.images += images
        self.befores += befores

    def deletes(self) -> npt.NDArray[np.bool_]:
        """Which events delete their row, one truth value an event."""
        return np.fromiter(map("d".__eq__, self.ops), dtype=bool, count=len(self))

    def select(self, chosen: Sequence[int]) -> RowEvents:
        """The events at these indices (into the lists)."""
        parts: dict[str, Any] = {
            name: values if values is None else selected(values, chosen) for name, values in vars(self).items()
        }
        return RowEvents(**parts)

    def merged(self, more: RowEvents) -> RowEvents:
        """These events and those of ``more``, which has the same lists, in the order of their records."""
        if not len(more):
            return self
        whole = self.extended(more)
        return whole.select(np.argsort(whole.at, kind="stable").tolist())

    def extended(self, more: RowEvents) -> RowEvents:
        """These events followed by those of ``more``, which has the same lists."""
        parts: dict[str, Any] = {}
        for name, values in vars(self).items():
            others = getattr(more, name)
            if isinstance(values, Slices):
                parts[name] = values.extended(others)
            else:
                parts[name] = None if values is None else values + others
        return RowEvents(**parts)


def from_flats(flats: list[Any], at: list[int], payloads: list[Buffer], traced: bool) -> RowEvents:
    """Events of flat messages; the whole message is the row image."""
    files, positions = _either(flats, "file"), _either(flats, "pos")
    placed = [file is not UNSET and position is not UNSET for file, position in zip(files, positions, strict=True)]
    return RowEvents(
        at=at,
        ops=["d" if f.deleted in ("true", True) else f.op if isinstance(f.op, str) else "" for f in flats],
        databases=_known(_either(flats, "db"), None),
        tables=_known(_either(flats, "table"), None),
        files=[(file or "") if there else None for file, there in zip(files, placed, strict=True)],
        positions=_known(positions, NO_POSITION),
        rows=_known(_either(flats, "row"), 0),
        source_ms=_known(_either(flats, "ts_ms"), 0),
        servers=_known(_either(flats, "server_id"), None) if traced else None,
        gtids=_known(_either(flats, "gtid"), None) if traced else None,
        images=payloads,
        befores=None,
    )


def deletes_by_key(at: list[int], keys: list[Buffer], source: SourceTable) -> RowEvents:
    """Events of flat tombstones. The key is the only known part of the row."""
    n = len(at)
    return RowEvents(
        at=at,
        ops=["d"] * n,
        databases=[source.database] * n,
        tables=[source.table] * n,
        files=[None] * n,
        positions=[NO_POSITION] * n,
        rows=[0] * n,
        source_ms=[0] * n,
        servers=None,
        gtids=None,
        images=keys,
        befores=None,
    )


def _either(flats: list[Any], name: str) -> list[Any]:
    """A field under either of its two names: ``source.file`` becomes ``__source_file``, ``file`` becomes ``__file``."""
    longer = f"source_{name}"
    plain = [getattr(f, name) for f in flats]
    return [p if (s := getattr(f, longer)) is UNSET else s for p, f in zip(plain, flats, strict=True)]


def _known(values: list[Any], absent: Any) -> list[Any]:  # noqa: ANN401 - any JSON scalar
    return [absent if value is UNSET or value is None else value for value in values]


@dataclass(frozen=True)
class Places:
    """The order of events.

    ``orders``: ordering values. ``positions``: ordering values of the binlog places alone, which select the schema in
    force; NO_PLACE where there is none. In both, OUT_OF_RANGE marks a value that does not fit.
    """

    orders: _I64
    positions: _I64

    def binlog(self, chosen: _I64) -> _I64:
        """The binlog places of the events at these indices, UNKNOWN_PLACE where there is none."""
        chosen_positions = self.positions[chosen]
        placed = (chosen_positions >= 0) & ((chosen_positions >> POSITION_BITS) & ((1 << FILE_BITS) - 1) > 0)
        return np.where(placed, chosen_positions, UNKNOWN_PLACE)


def places(events: RowEvents, offsets: _I64, options: DecodeOptions) -> Places:
    """The order of all events. ``offsets``: their Kafka offsets, which order records without a binlog place."""
    epochs = _epochs(events, options)
    positions = np.array(events.positions, dtype=np.int64)
    streamed = order.streamed_orders(epochs, events.files, positions)
    orders = streamed
    if "r" in events.ops:
        snapshot = np.array([op == "r" for op in events.ops])
        source_ms = np.array(events.source_ms, dtype=np.int64)
        orders = np.where(snapshot, order.snapshot_orders(epochs, source_ms), orders)
    if events.befores is None and (options.flat_tombstone_deletes or None in events.files):
        by_offset = np.array([options.flat_tombstone_deletes or file is None for file in events.files])
        orders = np.where(by_offset, order.offset_orders(epochs, offsets), orders)
        streamed = np.where(by_offset & (streamed == order.OUT_OF_RANGE), NO_PLACE, streamed)
    return Places(orders, streamed)


def _epochs(events: RowEvents, options: DecodeOptions) -> _I64:
    if events.servers is None or events.gtids is None:
        return np.full(len(events), options.epoch, dtype=np.int64)
    pairs = zip(events.servers, events.gtids, strict=True)
    return np.fromiter((options.epoch_for(server, gtid) for server, gtid in pairs), np.int64, len(events))
