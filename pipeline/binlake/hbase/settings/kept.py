"""The section ``derive``: what a process that derives wide tables keeps of tables of cells."""

from __future__ import annotations

from pydantic import Field

from hudilake.validation import Amount, Section, Text


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
