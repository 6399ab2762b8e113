"""EXTERNAL: where the record keys are is kept in a key-value store beside the table.

The store takes no part in the commit. So an entry has the instant that wrote it and the entries before it, and counts
only if its instant has completed on the timeline (Hudi's HBase index checks the same): nothing is to be undone after a
rollback or a crash. Commits that no writer noted in the store, restores and a lost store show on the timeline; then the
keys of the table are read again, in a new generation: entries of older generations do not count.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import msgspec
import pyarrow as pa

from hudilake.clock import new_uuid
from hudilake.errors import TransientError
from hudilake.format.files.file_group_write import KeyChanges
from hudilake.format.timeline.instant import WRITE_ACTIONS
from hudilake.index.base import KeyLocations, LookupCost
from hudilake.index.living_keys import all_living_keys
from hudilake.index.stores.base import MAX_KEY_BYTES, KeyValueStore
from hudilake.index.untold import changes_since, latest_change
from hudilake.storage.metered import Meter
from hudilake.table.table import HudiTable

#: Partition path and file id; two empty texts for no row.
Place: TypeAlias = tuple[str, str]
_NOWHERE: Final = ("", "")
#: The instant of entries that were read from the table: they always count.
_READ: Final = ""
_KEYS_AT_ONCE: Final = 50_000
#: How often the store may be read again while others write to it.
_ATTEMPTS: Final = 3


class _StoredKey(msgspec.Struct, array_like=True):
    """What the store knows of a key: (instant, partition path, file id), newest first."""

    generation: str
    versions: list[tuple[str, str, str]]


class _State(msgspec.Struct, array_like=True):
    """What the store knows of a table. ``since``: the completion time of the last commit that was read."""

    generation: str
    since: str


@dataclass(frozen=True, slots=True)
class _Names:
    """The store's keys of one table."""

    table: bytes

    @property
    def state(self) -> bytes:
        return self.table + b"state"

    def noted(self, generation: str, instant: str) -> bytes:
        """Of an instant that its writer noted in the store."""
        return self.table + f"told/{generation}/{instant}".encode()

    def entry(self, key: str) -> bytes:
        """Of a record key; a long one by its SHA-256."""
        name = self.table + b"key/" + key.encode()
        return name if len(name) <= MAX_KEY_BYTES else self.table + b"long/" + hashlib.sha256(key.encode()).digest()


class ExternalIndex:
    """The keys of an open table in a store (see ``base.KeyIndex``); global.

    Args:
        table: open.
        store: which other tables may use too.
    """

    def __init__(self, table: HudiTable, store: KeyValueStore) -> None:
        self._table, self._store = table, store
        self._names = _Names(hashlib.sha256(table.storage.uri.encode()).hexdigest()[:16].encode() + b"/")
        #: Instants that completed, and those that did not as far as the table knew in that generation of it.
        self._completed = {_READ}
        self._unknown: set[str] = set()
        self._generation = table.generation
        #: A generation, and the completion time up to which the store has a note of every commit.
        self._until = "", ""

    def locate(self, keys: pa.Array, partition_paths: pa.Array) -> KeyLocations:
        """As ``KeyIndex.locate``; ``bytes_read`` counts the entries, and the table's files if they were read again.
        Raises TransientError if other writers read the table again at the same time."""
        begun, cost = time.perf_counter(), LookupCost(keys=len(keys))
        texts: list[str] = keys.to_pylist()
        for _ in range(_ATTEMPTS):
            generation = self._current(cost)
            places = [self._place(entry) for entry in self._entries(texts, generation, cost)]
            if (state := self._state()) is not None and state.generation == generation:
                break
        else:
            raise TransientError(
                "the external index is being read from the table by another process",
                do_next="start again when it is done",
                table=self._table.config.name,
            )
        # The partition path of a table without partitions is "", so the file id tells whether there is a row.
        paths = pa.array([path if file_id else None for path, file_id in places], pa.string())
        ids = pa.array([file_id or None for _, file_id in places], pa.string())
        cost.seconds = time.perf_counter() - begun
        return KeyLocations(paths, ids, cost)

    def keep(self, instant: str, changes: Sequence[KeyChanges]) -> None:
        """As ``KeyIndex.keep``. The instant is noted in the store after its entries are written."""
        state = self._state()
        if state is None:
            return  # the next lookup reads the table
        inserted: dict[str, Place] = {}
        deleted: dict[str, Place] = {}
        for change in changes:
            inserted |= dict.fromkeys(change.inserted.to_pylist(), (change.partition_path, change.file_id))
            deleted |= dict.fromkeys(change.deleted.to_pylist(), (change.partition_path, change.file_id))
        self._write(state.generation, instant, inserted, deleted)
        self._store.put_many({self._names.noted(state.generation, instant): b"1"})

    def _write(self, generation: str, instant: str, inserted: dict[str, Place], deleted: dict[str, Place]) -> None:
        """Put an instant's entries before those that there are. A key that is deleted in one file group counts only if
        it was there: it may have moved."""
        keys = list({**deleted, **inserted})
        for begin in range(0, len(keys), _KEYS_AT_ONCE):
            some = keys[begin : begin + _KEYS_AT_ONCE]
            written: dict[bytes, bytes] = {}
            for key, entry in zip(some, self._entries(some, generation, LookupCost()), strict=True):
                place = inserted.get(key, _NOWHERE)
                if key not in inserted and self._place(entry) != deleted[key]:
                    continue
                versions = [(instant, *place), *self._versions_kept(entry, instant)]
                written[self._names.entry(key)] = msgspec.msgpack.encode(_StoredKey(generation, versions))
            self._store.put_many(written)

    def _versions_kept(self, entry: _StoredKey | None, instant: str) -> Iterable[tuple[str, str, str]]:
        """The versions of an entry down to the newest one that counts: none before it is asked for again."""
        for version in entry.versions if entry is not None else ():
            if version[0] != instant:
                yield version
            if self._counts(version[0]):
                return

    def _place(self, entry: _StoredKey | None) -> Place:
        for instant, path, file_id in entry.versions if entry is not None else ():
            if self._counts(instant):
                return path, file_id
        return _NOWHERE

    def _counts(self, instant: str) -> bool:
        """Whether an instant completed, as of the table's last refresh. What the active timeline does not have was
        archived or rolled back, or another writer has completed it since: this is asked again after a refresh."""
        if self._generation != self._table.generation:
            self._generation, self._unknown = self._table.generation, set()
        if instant in self._completed or instant in self._unknown:
            return instant in self._completed
        known = self._table.timeline.find(instant)
        if known is not None and not (known.action in WRITE_ACTIONS and known.completed):
            return False  # pending: ask again
        if known is not None or self._table.timeline.history().completion_time(instant) is not None:
            self._completed.add(instant)
            return True
        self._unknown.add(instant)
        return False

    def _entries(self, keys: Sequence[str], generation: str, cost: LookupCost) -> list[_StoredKey | None]:
        """The entries of that generation."""
        entries: list[_StoredKey | None] = []
        for begin in range(0, len(keys), _KEYS_AT_ONCE):
            names = [self._names.entry(key) for key in keys[begin : begin + _KEYS_AT_ONCE]]
            values = self._store.get_many(names)
            cost.bytes_read += sum(len(value) for value in values if value is not None)
            entries += [None if value is None else _ENTRY.decode(value) for value in values]
        return [entry if entry is not None and entry.generation == generation else None for entry in entries]

    def _state(self) -> _State | None:
        (value,) = self._store.get_many([self._names.state])
        return _STATE.decode(value) if value else None

    def _current(self, cost: LookupCost) -> str:
        """The generation that knows all commits of the table; the keys are read from the table if there is none."""
        state = self._state()
        if state is not None:
            since = self._until[1] if self._until[0] == state.generation else state.since
            until, changes = latest_change(self._table), changes_since(self._table, since)
            noted = self._store.get_many([self._names.noted(state.generation, c.requested_time) for c in changes])
            if all(noted):
                self._until = state.generation, until
                return state.generation
        return self._read_table(cost)

    def _read_table(self, cost: LookupCost) -> str:
        """Begin a new generation with all keys of the table."""
        self._store.put_many({self._names.state: b""})
        self._completed = {_READ}
        generation, since, meter = new_uuid(), latest_change(self._table), Meter()
        for file_slice, keys in all_living_keys(self._table, meter):
            value = msgspec.msgpack.encode(
                _StoredKey(generation, [(_READ, file_slice.partition_path, file_slice.file_id)])
            )
            for begin in range(0, len(keys), _KEYS_AT_ONCE):
                some = keys.slice(begin, _KEYS_AT_ONCE).to_pylist()
                self._store.put_many({self._names.entry(key): value for key in some})
            cost.files_read += 1
        cost.files = cost.candidates = cost.files_read
        cost.bytes_read += meter.bytes_read
        self._store.put_many({self._names.state: msgspec.msgpack.encode(_State(generation, since))})
        return generation


_ENTRY: Final = msgspec.msgpack.Decoder(_StoredKey)
_STATE: Final = msgspec.msgpack.Decoder(_State)
