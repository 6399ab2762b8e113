"""The files of a table and their sizes."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq

from hudilake.format.files.view import file_slices
from hudilake.format.timeline.timeline import Timeline
from hudilake.storage import open_storage


def bytes_of(files: list[Path]) -> int:
    """The size of files together."""
    return sum(file.stat().st_size for file in files)


def data_bytes_of(files: list[Path]) -> int:
    """The size of the data in Parquet files before compression."""
    footers = [pq.read_metadata(file) for file in files]
    return sum(one.row_group(place).total_byte_size for one in footers for place in range(one.num_row_groups))


def hudi_files(path: Path) -> list[Path]:
    """The base files of a Hudi table's latest slices. Raises RuntimeError if there are log files."""
    storage = open_storage(path.as_uri())
    slices = file_slices(storage, Timeline.load(storage))
    if any(one.log_files for one in slices):
        raise RuntimeError("log files are left")
    return [path / one.base_file.path for one in slices if one.base_file is not None]
