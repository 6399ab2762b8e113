"""Column families of a store's table, as its descriptor declares them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from pydantic import Field, model_validator

from hudilake.validation import Amount, Count, Section, Text, mistake

_MS = 1000


@dataclass(frozen=True, slots=True)
class FamilyRule:
    """What a column family keeps, and what its delete markers mask (HBase Reference Guide, "Data Model").

    Args:
        name: of the family.
        versions: how many versions of a column are visible (``VERSIONS``).
        ttl_ms: the age in milliseconds from which a cell is not visible (``TTL``); None for cells that do not expire.
        min_versions: how many versions of a column stay visible although they are expired (``MIN_VERSIONS``).
        keep_deleted: deleted cells stay readable as of a time before their marker (``KEEP_DELETED_CELLS``).
        by_sequence: a marker masks only cells that were written before it (``NEW_VERSION_BEHAVIOR``; Bigtable).
    """

    name: str
    versions: int = 1
    ttl_ms: int | None = None
    min_versions: int = 0
    keep_deleted: bool = False
    by_sequence: bool = False


class FamilySettings(Section):
    """A column family, as the store's own descriptor declares it."""

    versions: Count = 1
    """How many versions of a column are visible (``VERSIONS``)."""
    ttl_seconds: Count | None = None
    """The age from which a cell is not visible any more (``TTL``); null for cells that do not expire."""
    min_versions: Amount = 0
    """How many versions stay visible although they are expired (``MIN_VERSIONS``)."""
    keep_deleted_cells: bool = False
    """Deleted cells can be read as of a time before their delete (``KEEP_DELETED_CELLS``)."""
    new_version_behavior: bool = Field(default=False)
    """A delete masks only what was written before it (``NEW_VERSION_BEHAVIOR``). Bigtable's deletes are so always."""

    @model_validator(mode="after")
    def _as_hbase_has_it(self) -> Self:
        """HBase refuses the descriptor of such a family (``TableDescriptorChecker``)."""
        if self.min_versions > self.versions:
            raise mistake("min_versions must not be more than versions")
        return self

    def rule(self, name: str) -> FamilyRule:
        """The section as a rule."""
        ttl = None if self.ttl_seconds is None else self.ttl_seconds * _MS
        return FamilyRule(
            name, self.versions, ttl, self.min_versions, self.keep_deleted_cells, self.new_version_behavior
        )


# The section ``derive``: what a process that derives wide tables keeps of tables of cells.


class DeriveSettings(Section):
    """What the process that derives wide tables keeps on its own disk of tables of cells, so that a batch does not read
    whole tables. It is made anew from the tables when it is lost."""

    directory: Text | None = None
    """A directory on a local disk, which several streams may share. Null: ``cells`` below the state if that is on local
    disk, else ``~/.cache/binlake/cells``, or ``$BINLAKE_CACHE/cells``."""
    max_disk_gb: float = Field(default=32.0, ge=0)
    """The most that files below the directory take, about 60 bytes a cell. File groups that find no room are read as
    they are whenever a batch touches them; 0 keeps nothing."""
    max_memory_mb: Amount = 256
    """The most memory for cells of newer commits; further ones go to the directory."""
