"""A storage rooted further down in one that counts or dies, so that the calls of both roots are one sequence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from hudilake.storage.base import FileInfo, Files, Names, Storage
from tests.hudilake.failing_storage import CountingStorage, DyingStorage


@dataclass
class Below:
    """Passes every call to ``outer`` with ``prefix`` before its path."""

    outer: Storage
    prefix: str

    @property
    def uri(self) -> str:
        return f"{self.outer.uri}/{self.prefix}"

    def _at(self, path: str) -> str:
        return f"{self.prefix}/{path}" if path else self.prefix

    def _inside(self, info: FileInfo) -> FileInfo:
        return replace(info, path=info.path.removeprefix(f"{self.prefix}/"))

    def read(self, path: str) -> bytes:
        return self.outer.read(self._at(path))

    def read_range(self, path: str, start: int, length: int) -> bytes:
        return self.outer.read_range(self._at(path), start, length)

    def create(self, path: str, data: bytes) -> None:
        self.outer.create(self._at(path), data)

    def write(self, path: str, data: bytes) -> None:
        self.outer.write(self._at(path), data)

    def delete(self, path: str) -> bool:
        return self.outer.delete(self._at(path))

    def delete_tree(self, prefix: str) -> None:
        self.outer.delete_tree(self._at(prefix))

    def stat(self, path: str) -> FileInfo | None:
        info = self.outer.stat(self._at(path))
        return None if info is None else self._inside(info)

    def list(self, prefix: str, start_after: str | None = None) -> Files:
        return [self._inside(info) for info in self.outer.list(self._at(prefix), start_after)]

    def list_dirs(self, prefix: str) -> Names:
        return self.outer.list_dirs(self._at(prefix))

    def walk(self, prefix: str) -> Iterator[FileInfo]:
        return map(self._inside, self.outer.walk(self._at(prefix)))

    def sub(self, path: str) -> Storage:
        return Below(self.outer, self._at(path))


class Counting(CountingStorage):
    """A counting storage that can be rooted further down."""

    def sub(self, path: str) -> Storage:
        return Below(self, path)


class Dying(DyingStorage):
    """A dying storage that can be rooted further down."""

    def sub(self, path: str) -> Storage:
        return Below(self, path)
