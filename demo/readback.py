"""Reading a lake table with hudi-rs, which shares no code with binlake."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from hudi import HudiTableBuilder


def read_table(path: Path) -> pa.Table:
    """All rows of the table at ``path`` as hudi-rs gives them. Raises FileNotFoundError if there is no table."""
    if not (path / ".hoodie" / "hoodie.properties").exists():
        raise FileNotFoundError(f"no table at {path}")
    batches = HudiTableBuilder.from_base_uri(path.absolute().as_uri()).build().read()
    return pa.Table.from_batches([pa.record_batch(b) for b in batches])
