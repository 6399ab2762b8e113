"""How the file group of a record key is found."""

from __future__ import annotations

from typing import Final, Literal, Self

from pydantic import model_validator

from pipeline.policies import IndexType, LookupPolicy
from pipeline.validation import mistake

RowsKind = Literal["upsert", "append"]
#: Indexes of which a file group follows from the key alone, and the one of tables without keys.
_NOT_LOOKED_UP: Final = frozenset({"bucket", "consistent_bucket", "none"})


class IndexSettings(LookupPolicy):
    """How the file group of a record key is found."""

    type: IndexType = "bucket"
    """``bucket``: computed from the key, with ``buckets`` file groups. ``bloom``, ``simple``, ``record_index`` and
    others are looked up: see Indexes. ``none``: only for ``kind: append``."""

    @property
    def looks_up(self) -> bool:
        """Whether the file group of a key is looked up when rows are written."""
        return self.type not in _NOT_LOOKED_UP

    @model_validator(mode="after")
    def _store_is_given(self) -> Self:
        if (self.type == "external") != (self.external is not None):
            raise mistake("external is for type external, which needs it")
        return self
