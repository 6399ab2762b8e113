"""A real store of logs one of whose calls gets another answer (see ``tests.binlake.stream.dying_store``)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from lakemetastore.log.stores.base import Entry, LogStore
from tests.binlake.stream.dying_store import Fate


@dataclass
class DyingLogStore:
    """The store, with its fate."""

    inner: LogStore
    fate: Fate

    @property
    def uri(self) -> str:
        return self.inner.uri

    def append(self, log: str, version: int, data: bytes) -> bool:
        return self.fate.call("create", f"{log} {version}", lambda: self.inner.append(log, version, data))

    def read(self, log: str, after: int, limit: int | None = None) -> list[Entry]:
        return self.fate.call("read", f"{log} {after}", lambda: self.inner.read(log, after, limit))

    def last(self, log: str) -> int:
        return self.fate.call("last", log, lambda: self.inner.last(log))

    def write_snapshot(self, log: str, version: int, data: bytes) -> None:
        self.fate.call("write", f"{log} {version}", lambda: self.inner.write_snapshot(log, version, data))

    def snapshot(self, log: str, before: int | None = None) -> Entry | None:
        return self.fate.call("snapshot", f"{log} {before}", lambda: self.inner.snapshot(log, before))

    def trim(self, log: str, version: int) -> None:
        self.fate.call("delete", f"{log} {version}", lambda: self.inner.trim(log, version))

    def logs(self, prefix: str = "") -> Iterator[str]:
        return self.fate.call("logs", prefix, lambda: iter(list(self.inner.logs(prefix))))

    def delete(self, log: str) -> None:
        self.fate.call("delete", log, lambda: self.inner.delete(log))

    def turn(self, log: str, timeout_s: float) -> AbstractContextManager[bool]:
        return nullcontext(True)

    def close(self) -> None:
        self.inner.close()
