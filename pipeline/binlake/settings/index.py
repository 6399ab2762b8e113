"""How the file group of a record key is found."""

from __future__ import annotations

import re
from typing import Final, Literal, Self

from pydantic import Field, field_validator, model_validator

from hudilake.policies import IndexType, LookupPolicy
from hudilake.validation import Count, Text, mistake

RowsKind = Literal["upsert", "append"]
#: Indexes of which a file group follows from the key alone, and the one of tables without keys.
_NOT_LOOKED_UP: Final = frozenset({"bucket", "consistent_bucket", "none"})


class IndexSettings(LookupPolicy):
    """How the file group of a record key is found."""

    partition_buckets: dict[Text, Count] = Field(default_factory=dict)
    """Other numbers of buckets of a new table, by regular expressions that are searched in the partition path. The
    first that is found counts; ``buckets`` where none is. No commas, no semicolons: Hudi separates them by these."""
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

    def __hash__(self) -> int:
        return hash(self.model_dump_json())

    @field_validator("partition_buckets")
    @classmethod
    def _expressions(cls, value: dict[str, int]) -> dict[str, int]:
        for expression in value:
            if "," in expression or ";" in expression:
                raise ValueError(f"{expression!r}: Hudi separates the expressions by commas and semicolons")
            try:
                re.compile(expression)
            except re.error as error:
                raise ValueError(f"{expression!r} is no regular expression: {error}") from error
        return value
