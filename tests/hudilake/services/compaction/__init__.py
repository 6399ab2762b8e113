"""Compaction by the service, and by hand for the tests of other parts."""

from tests.hudilake.services.compaction.by_hand import (
    compact,
    complete_compaction,
    request_compaction,
    write_base_files,
)

__all__ = ["compact", "complete_compaction", "request_compaction", "write_base_files"]
