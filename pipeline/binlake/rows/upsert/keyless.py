"""Tables without a key: a row is identified by its whole content, as in a multiset.

An insert becomes a row whose record key is its place in the binlog, so that a redelivered insert is the same row. A
delete (or the old half of an update) removes one live row of equal content, which a digest column finds. The commit
records the newest ``WINDOW`` applied places, so that a redelivery is recognised. A delete whose row has not arrived yet
(events without a key are spread over the topic's partitions) is recorded as a debt, and removes the row when it
arrives. A debt that stays is a finding: the lake holds another content than the source had. It removes no row that was
added after it.

MariaDB since 11.4 gives all events of a transaction one position, and row numbers begin at 0 in each event (measured;
``binlog_legacy_event_pos``). Events at one place are therefore distinguished by their content. Events of equal content
at one place, from two statements of a transaction, cannot be distinguished from a redelivery: the second one is lost.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import mmh3
import numpy as np
import pyarrow as pa

from binlake.decode.changes import FILE_BITS, META_NAMES, POSITION_BITS, Op
from binlake.decode.order import OrderKind, OrderPlace
from binlake.rows.upsert.route import KEY, MOVED_AWAY, ORDER_COLUMNS
from binlake.rows.upsert.target import ROW_FIELD, Target
from hudilake.format.files.log_rows import Flags

DIGEST_FIELD = "_binlake_digest"
#: Places recorded per table: redeliveries reach back as far as the connector's last offset commit.
WINDOW = 5_000

#: A live row: ordering value, partition path, record key.
LiveRow = tuple[int, str, str]
#: digest -> live rows of that content.
LiveRows = Mapping[str, list[LiveRow]]
FindLive = Callable[[frozenset[str]], LiveRows]


#: One half of an event: ordering value, row inside the event, and a mark: bit 0 is 1 for a row that is added, 0 for one
#: that is removed; the bits above are of the digest of its content, or 0 for any content.
Half = tuple[int, int, int]
#: Hex digits of the digest in the mark of a half.
_MARK_DIGITS = 7


@dataclass
class KeylessState:
    """The state that a keyless table keeps from commit to commit: recently applied halves, and deletes still owed.

    ``debts``: (digest, ordering value, row) of each. ``lost``: how many more there were than a commit records.
    """

    applied: set[Half] = field(default_factory=set)
    debts: list[tuple[str, int, int]] = field(default_factory=list)
    lost: int = 0

    def to_text(self) -> str:
        """A compact text for the commit's extra metadata, with the newest WINDOW halves and as many debts."""
        recent = np.array(sorted(self.applied)[-WINDOW:], dtype="<i8").reshape(-1, 3)
        packed = zlib.compress(np.diff(recent, axis=0, prepend=0).T.tobytes(), 6)
        said = {"applied": base64.b64encode(packed).decode(), "debts": self.debts[-WINDOW:]}
        lost = self.lost + max(0, len(self.debts) - WINDOW)
        return json.dumps({**said, **({"lost": lost} if lost else {})}, separators=(",", ":"))

    @staticmethod
    def from_text(text: str | None) -> KeylessState:
        """The state that ``to_text`` wrote; an empty one for None."""
        if text is None:
            return KeylessState()
        data = json.loads(text)
        steps = np.frombuffer(zlib.decompress(base64.b64decode(data["applied"])), dtype="<i8").reshape(3, -1)
        halves = np.cumsum(steps, axis=1).T.tolist()
        debts = [(d, o, r) for d, o, r in data["debts"]]
        return KeylessState({(o, r, c) for o, r, c in halves}, debts, data.get("lost", 0))

    def copy(self) -> KeylessState:
        """A copy for changes, so that a failed commit leaves this state unchanged."""
        return KeylessState(set(self.applied), list(self.debts), self.lost)

    @property
    def unmatched(self) -> int:
        """How many deletes and former halves of updates have found no row of their content."""
        return len(self.debts) + self.lost

    @property
    def finding(self) -> str | None:
        """The same for people, and what they can do; None if every one has found its row."""
        if not self.unmatched:
            return None
        first = min((order for _, order, _ in self.debts), default=None)
        since = f", the oldest known at {OrderPlace.of(first)}" if first is not None else ""
        return (
            f"{self.unmatched} deletes or former halves of updates found no row of their content{since}: "
            "their rows may still be here with other values; unless rows of it wait in quarantine or in another "
            "partition, compare the table (binlake verify) and load it again under a new path (tables.path)"
        )

    def removed_until(self, order: int) -> None:
        """Forget deletes up to an ordering value, because a statement has removed all rows up to it."""
        self.debts = [debt for debt in self.debts if debt[1] > order]
        self.lost = 0

    def of_any_content(self) -> KeylessState:
        """A copy whose halves stand for any content: a statement has changed the content of rows from before it, which
        may be delivered again."""
        return replace(self.copy(), applied={(order, row, mark & 1) for order, row, mark in self.applied})

    def pay(self, digests: Sequence[str], orders: Sequence[int], removed: Flags) -> Flags:
        """A mask of the live rows that outstanding deletes remove; these deletes are outstanding no longer.

        Args:
            digests, orders: of n live rows, their ordering values.
            removed: mask of n, rows that are removed already.
        """
        paid = np.zeros(len(digests), dtype=bool)
        by_digest: dict[str, list[int]] = {}
        for index in np.flatnonzero(~removed).tolist():
            by_digest.setdefault(digests[index], []).append(index)
        for debt in sorted(self.debts):
            mine = by_digest.get(debt[0], [])
            row_index = next((index for index in mine if not paid[index] and _takes(debt[1], orders[index])), None)
            if row_index is not None:
                paid[row_index] = True
                self.debts.remove(debt)
        return paid


@dataclass
class KeyedRows:
    """Keyed rows (one per record key) with their partition paths, and how many records changed nothing."""

    rows: pa.Table
    paths: pa.Array
    superseded: int


def digests(rows: pa.Table, names: list[str]) -> list[str]:
    """A digest of every row's non-null values: 32 hex digits each.

    Nulls are left out, so that an added column does not change the digest of rows that lack it. FLOAT is rounded to 6
    digits: Debezium's snapshots give no more, its streamed images do (recorded).
    """
    labels = sorted(names)
    columns = [_texts(rows.column(name)) for name in labels]
    contents: Iterable[tuple[str | bytes | None, ...]] = zip(*columns, strict=True) if columns else [()] * len(rows)
    return [
        mmh3.mmh3_x64_128_digest(
            repr([(n, v) for n, v in zip(labels, values, strict=True) if v is not None]).encode()
        ).hex()
        for values in contents
    ]


def _texts(column: pa.ChunkedArray) -> list[str | bytes | None]:
    if pa.types.is_float32(column.type):
        return [None if v is None else f"{v:.6g}" for v in column.to_pylist()]
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    return [v if v is None or isinstance(v, bytes) else str(v) for v in column.to_pylist()]


@dataclass(frozen=True, slots=True)
class _Event:
    at: int
    digest: str
    upsert: bool
    record: bool  # False for the old half of an update
    order: int
    row: int
    key: str
    half: Half | None  # identifies a redelivery; None for rows without a place in the binlog


def _events(events: pa.Table, marks: list[str]) -> Iterator[_Event]:
    names = ("__order", "__row", "__part", "__offset")
    columns = [events.column(n).to_numpy() for n in names]
    partitions = events.column("__partition").to_numpy()
    ops = events.column("__op").to_numpy()
    for index in np.lexsort(columns[::-1]).tolist():
        order, row, offset = int(columns[0][index]), int(columns[1][index]), int(columns[3][index])
        place = order & ((1 << FILE_BITS + POSITION_BITS) - 1)
        streamed = place >> POSITION_BITS and place != offset  # neither a snapshot row nor ordered by Kafka's offset
        key = f"{order}-{row}" if streamed else f"k{int(partitions[index])}-{offset}" + (f"-{row}" if row else "")
        comes = bool(ops[index] == Op.UPSERT)
        content = int(marks[index][:_MARK_DIGITS], 16) + 1
        half = (order, row, content << 1 | int(comes)) if streamed else None
        yield _Event(index, marks[index], comes, bool(ops[index] != MOVED_AWAY), order, row, key, half)


def resolve(
    events: pa.Table, target: Target, state: KeylessState, find_live: FindLive, gone: Collection[str] = ()
) -> KeyedRows:
    """Turn whole-row events into keyed rows, and update ``state``.

    Args:
        events: n events as ``route`` packs them (value columns, META_FIELDS, ``__part``).
        target: the table; its partition layout gives the paths.
        state: changed in place.
        find_live: called once, with the digests that some delete of this batch needs.
        gone: columns that the source no longer has. Later images lack them, so no digest may contain them, also not
            that of a row from before the DROP COLUMN.
    """
    values = [n for n in events.column_names if n not in (*META_NAMES, "__part")]
    marks = digests(events, [n for n in values if n not in gone])
    ordered = list(_events(events, marks))
    wanted = frozenset(e.digest for e in ordered if not e.upsert) | {d for d, _, _ in state.debts if d in set(marks)}
    live = {d: sorted(rows) for d, rows in find_live(wanted).items()} if wanted else {}
    paths = target.config.layout.paths(events).to_pylist()
    taken: dict[str, tuple[int, bool, int, str]] = {}
    superseded = 0
    inserted = {(order, row) for order, row, mark in state.applied if mark & 1}
    newest = _newest_deletes(state)
    for event in ordered:
        half = event.half
        if half is not None:
            if _is_applied(half, state):
                superseded += event.record
                continue
            state.applied.add(half)
            if event.upsert and half[:2] in inserted:  # another row has this place, and the key made of it
                event = replace(event, key=f"{event.key}-{half[2] >> 1:x}")
            elif event.upsert:
                inserted.add(half[:2])
        if not event.upsert:
            if not _go(event, live, taken):
                state.debts.append((event.digest, max(event.order, *_of_content(newest, event)), event.row))
            if half is not None:
                newest[half[2] >> 1] = max(event.order, newest.get(half[2] >> 1, -1))
        elif not _come(event, live, state, taken, paths):
            superseded += 1
    state.applied = set(sorted(state.applied)[-WINDOW:])
    return _table(events, values, marks, taken, superseded)


def _is_applied(half: Half, state: KeylessState) -> bool:
    order, row, mark = half
    return half in state.applied or (order, row, mark & 1) in state.applied


def _come(
    event: _Event,
    live: dict[str, list[LiveRow]],
    state: KeylessState,
    taken: dict[str, tuple[int, bool, int, str]],
    paths: list[str],
) -> bool:
    """Add a row; False when a delete was waiting for a row of its content."""
    here = live.setdefault(event.digest, [])
    known = any(key == event.key for _, _, key in here)
    debt = min((d for d in state.debts if d[0] == event.digest and _takes(d[1], event.order)), default=None)
    if debt is not None and not known:
        state.debts.remove(debt)
        return False
    if not known:
        here.append((event.order, paths[event.at], event.key))
    taken[event.key] = (event.at, True, event.order, paths[event.at])
    return True


def _takes(debt: int, row: int) -> bool:
    """Whether an outstanding delete may remove a row that arrives, by their ordering values. Of rows that Kafka's
    offset orders it cannot be said which came first: they may be in several partitions."""
    return row <= debt or OrderPlace.of(debt).kind is OrderKind.OFFSET


def _newest_deletes(state: KeylessState) -> dict[int, int]:
    """The newest delete that was applied, by the bits of its content's digest; 0 for any content."""
    newest: dict[int, int] = {}
    for order, _, mark in state.applied:
        if not mark & 1:
            newest[mark >> 1] = max(order, newest.get(mark >> 1, -1))
    return newest


def _of_content(newest: Mapping[int, int], event: _Event) -> tuple[int, int]:
    """The newest delete of an event's content. It may have taken the row that this event was meant for, and left its
    own, which is still to arrive: the event is owed from there on."""
    return newest.get(0, -1), newest.get(event.half[2] >> 1, -1) if event.half is not None else -1


def _go(event: _Event, live: dict[str, list[LiveRow]], taken: dict[str, tuple[int, bool, int, str]]) -> bool:
    """Remove a row; False if there is none of the content.

    Rows of equal content cannot be distinguished, so any of them may be removed, also one that was added after this
    delete: the delete is then ordered after the row.
    """
    rows = live.get(event.digest)
    if not rows:
        return False
    came, path, key = rows.pop(0)
    taken[key] = (event.at, False, max(event.order, came + 1), path)
    return True


def _table(
    events: pa.Table,
    values: list[str],
    marks: list[str],
    taken: Mapping[str, tuple[int, bool, int, str]],
    superseded: int,
) -> KeyedRows:
    keys = list(taken)
    places = list(taken.values())
    rows = events.take(pa.array([p[0] for p in places], pa.int64())).select([*values, *ORDER_COLUMNS])
    ops = pa.array([int(Op.UPSERT) if p[1] else int(Op.DELETE) for p in places], pa.int8())
    rows = rows.set_column(rows.column_names.index("__op"), rows.schema.field("__op"), ops)
    orders = pa.array([p[2] for p in places], pa.int64())
    rows = rows.set_column(rows.column_names.index("__order"), rows.schema.field("__order"), orders)
    key_column = pa.array(keys, pa.string())
    rows = rows.add_column(0, pa.field(KEY, pa.string()), key_column)
    rows = rows.add_column(1, pa.field(ROW_FIELD, pa.string()), key_column)
    digest_column = pa.array([marks[p[0]] for p in places], pa.string())
    rows = rows.add_column(2, pa.field(DIGEST_FIELD, pa.string()), digest_column)
    return KeyedRows(rows, pa.array([p[3] for p in places], pa.string()), superseded)
