"""The files of a partition in few bytes: tables have 100,000 files and more, and their states are kept in memory."""

from __future__ import annotations

from array import array
from collections.abc import Iterable

import msgspec

from lakemetastore.lake.entries import FileRange, LakeFile, PartitionChange

_RANGES = msgspec.msgpack.Decoder(tuple[tuple[FileRange, ...], ...])


class PartitionFiles(msgspec.Struct, frozen=True, array_like=True):
    """The files of a partition, sorted by name. Every field holds all files: about 100 bytes a file without statistics.

    Args:
        names: bare names, a line each.
        sizes: in bytes, 64 bits each.
        completed: when the write of each completed, 64 bits each.
        ranges: the statistics of each, as MessagePack; "" if no file has any.
    """

    names: str = ""
    sizes: bytes = b""
    completed: bytes = b""
    ranges: bytes = b""

    def __len__(self) -> int:
        return len(self.sizes) // 8

    @classmethod
    def of(cls, files: Iterable[LakeFile]) -> PartitionFiles:
        """The files of a partition."""
        ordered = sorted(files, key=lambda file: file.name)
        ranges = tuple(file.ranges for file in ordered)
        return cls(
            "\n".join(file.name for file in ordered),
            array("q", (file.size for file in ordered)).tobytes(),
            array("q", (int(file.completed) for file in ordered)).tobytes(),
            msgspec.msgpack.encode(ranges) if any(ranges) else b"",
        )

    def files(self) -> list[LakeFile]:
        """The files, by name."""
        sizes, completed = array("q", self.sizes), array("q", self.completed)
        names = self.names.split("\n") if len(sizes) else []
        ranges = _RANGES.decode(self.ranges) if self.ranges else ((),) * len(names)
        return [
            LakeFile(name, size, f"{time:017d}", known)
            for name, size, time, known in zip(names, sizes, completed, ranges, strict=True)
        ]

    def changed(self, change: PartitionChange) -> PartitionFiles:
        """The files after a change."""
        files = {file.name: file for file in self.files()}
        for name in change.removed:
            files.pop(name, None)
        files.update((file.name, file) for file in change.added)
        return PartitionFiles.of(files.values())
