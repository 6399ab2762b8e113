"""Base files in Lance's format, which Hudi 1.2 writes: read by the library of the extra ``lance``, never written.

It stands alone: nothing else knows the library. That takes paths of its own stores, so it reads a copy of the file.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from hudilake.errors import CorruptDataError
from hudilake.extras import require_extra
from hudilake.format.files.parquet_file import check_keys
from hudilake.storage.base import Storage


def is_lance(path: str) -> bool:
    """Whether a base file is one of Lance's, by its name."""
    return path.endswith(".lance")


def read_lance(storage: Storage, path: str, columns: Sequence[str] | None = None) -> pa.Table:
    """The rows. Arguments and errors of ``read_base_file``; MissingExtraError without the library."""
    require_extra("hudilake", "lance", "lance")
    from lance.file import LanceFileReader

    with tempfile.NamedTemporaryFile(suffix=".lance") as copy:
        Path(copy.name).write_bytes(storage.read(path))
        try:
            table: pa.Table = LanceFileReader(copy.name).read_all().to_table()
            table = table.select([n for n in table.column_names if columns is None or n in columns])
            check_keys(table)
        except (pa.ArrowException, OSError, ValueError, RuntimeError) as error:
            what = f"a Lance file cannot be read: {str(error).splitlines()[0]}"
            raise CorruptDataError(what, do_next="run binlake fsck", path=path) from error
    return table.replace_schema_metadata(None)
