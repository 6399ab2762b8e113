"""The horizon of a table: readings as of an earlier time may lack rows that compactions left out (``RowRetention``).

Each such compaction records the greatest one so far in its commit's extra metadata. Compactions of other writers leave
no row out and record none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from hudilake.errors import CorruptDataError
from hudilake.services.compaction.task import CompactedFile
from hudilake.table.table import HudiTable

#: The key of the extra metadata of a compaction's commit; milliseconds since 1970 as text.
HORIZON_KEY: Final = "binlake.horizon"


def horizon_extra(table: HudiTable, files: Iterable[CompactedFile]) -> Mapping[str, str]:
    """What a compaction of a table records of its horizon. Errors as ``recorded_horizon``."""
    made = [file.horizon_ms for file in files if file.horizon_ms is not None]
    if not made:
        return {}
    return {HORIZON_KEY: str(max(*made, recorded_horizon(table) or 0))}


def recorded_horizon(table: HudiTable) -> int | None:
    """The horizon of a table as of its last refresh, in milliseconds since 1970; None if no row was left out.

    Raises CorruptDataError, StorageError.
    """
    text = table.extra_metadata(HORIZON_KEY)
    if text is not None and not text.isdecimal():
        raise CorruptDataError(
            f"a commit's extra metadata {HORIZON_KEY} names no time: {text[:200]}",
            do_next="run binlake fsck",
            table=table.config.name,
        )
    return None if text is None else int(text)
