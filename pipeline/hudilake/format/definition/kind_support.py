"""The operations that some kinds of tables do not have; ``placement`` says why.

It stands alone because rooms above name operations without knowing kinds.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class TableOperation(StrEnum):
    """An operation that some kinds of tables do not have."""

    COMPACTION = "compaction"
    CLUSTERING = "clustering"
    REBUCKET = "rebucket"
    SPLIT = "splits and merges of buckets"
    BACKFILL = "backfill"
    REVERT = "revert"
    KEY_CHANGE = "another key"
    VERIFY = "verify and repair"
    RESYNC = "resync"
    ERASURE = "erasure"


@dataclass(frozen=True, slots=True)
class KindRefusal:
    """Why a kind of table does not have an operation, and what to do instead."""

    why: str
    do_next: str
