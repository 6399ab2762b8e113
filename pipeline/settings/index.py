"""How the file group of a record key is found."""

from __future__ import annotations

from typing import Literal

from pipeline.policies import IndexType
from pipeline.validation import Section

RowsKind = Literal["upsert", "append"]


class IndexSettings(Section):
    """How the file group of a record key is found."""

    type: IndexType = "bucket"
    """``bucket``: computed from the key, with ``buckets`` file groups. ``bloom``, ``simple``, ``record_index`` and
    others are looked up: see Indexes. ``none``: only for ``kind: append``."""
