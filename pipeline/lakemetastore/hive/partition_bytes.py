"""Partitions as bytes, equal to those of the C encoder, without building generated classes.

Most of a partition's bytes are its storage, which thousands of partitions share. These are encoded once.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

from lakemetastore.hive import to_thrift
from lakemetastore.hive.encoded import STOP, STRUCT
from lakemetastore.hive.message import encode
from lakemetastore.model import Partition, Storage, Table

_STRING, _MAP, _LIST, _I32 = 11, 13, 15, 8
_FIELD = struct.Struct("!bh")
_INT = struct.Struct("!i")
_LIST_VALUE = struct.Struct("!bi")
_LIST_HEAD = struct.Struct("!bhbi")
_MAP_HEAD = struct.Struct("!bhbbi")
_I32_FIELD = struct.Struct("!bhi")
_LOCATION = 2
_MOST_SHARED = 1000
_PROBE = "\x00location\x00"
"""Stands for the location in a storage's bytes, to be cut out. No type, name or parameter has it."""


class PartitionEncoder:
    """Encodes the partitions of one table. Not thread safe."""

    def __init__(self, table: Table) -> None:
        self._names = _text(2, table.database) + _text(3, table.name)
        self._tail = _text(9, to_thrift.CATALOG) + STOP
        self._storages: dict[int, tuple[Storage, bytes, bytes]] = {}
        self._parameters: dict[int, tuple[Mapping[str, str], bytes]] = {}

    def encode(self, p: Partition) -> bytes:
        """The bytes of ``ttypes.Partition``."""
        before, after = self._storage(p.storage)
        return b"".join(
            (
                _LIST_HEAD.pack(_LIST, 1, _STRING, len(p.values)),
                *map(_string, p.values),
                self._names,
                _I32_FIELD.pack(_I32, 4, p.created),
                _I32_FIELD.pack(_I32, 5, p.last_access),
                before,
                b"" if p.location is None else _text(_LOCATION, p.location),
                after,
                self._map(p.parameters),
                self._tail,
            )
        )

    def _storage(self, s: Storage) -> tuple[bytes, bytes]:
        """What stands before and after the location."""
        known = self._storages.get(id(s))
        if known is None:
            if len(self._storages) >= _MOST_SHARED:
                self._storages.clear()
            # The value is kept with its bytes, so that no other can have its id
            whole = _FIELD.pack(STRUCT, 6) + encode(to_thrift.storage(s, _PROBE))
            before, after = whole.split(_text(_LOCATION, _PROBE))
            known = self._storages[id(s)] = (s, before, after)
        return known[1], known[2]

    def _map(self, parameters: Mapping[str, str]) -> bytes:
        known = self._parameters.get(id(parameters))
        if known is None:
            if len(self._parameters) >= _MOST_SHARED:  # hardly any are shared
                self._parameters.clear()
            known = self._parameters[id(parameters)] = (parameters, _map(7, parameters))
        return known[1]


def text_list(texts: Sequence[str]) -> bytes:
    """The bytes of a list of strings."""
    return b"".join((_LIST_VALUE.pack(_STRING, len(texts)), *map(_string, texts)))


def _map(number: int, given: Mapping[str, str]) -> bytes:
    head = _MAP_HEAD.pack(_MAP, number, _STRING, _STRING, len(given))
    return head + b"".join(_string(text) for item in given.items() for text in item)


def _text(number: int, text: str) -> bytes:
    return _FIELD.pack(_STRING, number) + _string(text)


def _string(text: str) -> bytes:
    data = text.encode()
    return _INT.pack(len(data)) + data
