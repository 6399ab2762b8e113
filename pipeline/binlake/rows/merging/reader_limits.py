"""What readers cannot do with tables that are merged by their writer, for ``binlake check``.

It stands alone: only ``binlake check`` asks for it, and no write needs it.
"""

from __future__ import annotations

from hudilake.format.definition.merging import Merging


def reader_limits(merging: Merging) -> str | None:
    """What holds for readers of a lake table; None if they can do everything."""
    if not merging.groups:
        return None
    names = ", ".join(group.name for group in merging.groups)
    return (
        f"stitched from {names}: every reader shows the right rows, also of the past; of incremental queries only "
        "those of binlake are right: where a row was changed in part, Hudi Spark's give wrong rows and hudi-rs gives "
        "null in its other columns (docs/stitching.md)"
    )
