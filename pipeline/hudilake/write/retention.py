"""Which rows of a file group a compaction keeps, where a table's rows lose their meaning with time.

It stands alone: compaction names the rule, and ``write``, which may not import the services, follows it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeAlias, runtime_checkable

import pyarrow as pa

#: Leaves rows out. The rows come in the order of their record keys.
KeptRows: TypeAlias = Callable[[Iterable[pa.Table]], Iterator[pa.Table]]


@runtime_checkable
class RowRetention(Protocol):
    """The rule of a table. A value: picklable, and what it keeps depends on its arguments alone."""

    def horizon_ms(self, log_rows: pa.Table, instant: str) -> int:
        """The time that no reading as of an earlier one is answered by the kept rows; milliseconds since 1970.

        Args:
            log_rows: the rows of the file group's log files, with the columns of a base file.
            instant: of the compaction.
        """
        ...

    def kept(self, rows: Iterable[pa.Table], horizon_ms: int) -> Iterator[pa.Table]:
        """The rows that stay.

        Args:
            rows: the live rows of a file group with the columns of a base file, in the order of their record keys.
            horizon_ms: of ``horizon_ms``.
        """
        ...
