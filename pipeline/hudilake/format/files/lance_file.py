"""Base files in Lance's format, which Hudi 1.2 writes: read by the library of the extra ``lance``, never written.

The library takes paths of its own stores, so a file is fetched whole into a directory of its own for as long as it is
read.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa

from hudilake.errors import CorruptDataError
from hudilake.extras import require_extra
from hudilake.format.files.parquet_file import check_keys
from hudilake.storage.base import Storage

LANCE: Final = "lance"


def is_lance(path: str) -> bool:
    """Whether a base file is one of Lance's, by its name."""
    return path.endswith(f".{LANCE}")


def read_lance(storage: Storage, path: str, columns: Sequence[str] | None = None) -> pa.Table:
    """The rows of a base file; arguments as ``read_base_file``.

    Raises MissingExtraError without the library, CorruptDataError, StorageNotFoundError.
    """
    require_extra("hudilake", LANCE, LANCE)
    from lance.file import LanceFileReader

    with tempfile.TemporaryDirectory(prefix="hudilake-lance-") as directory:
        copy = Path(directory) / f"base.{LANCE}"
        copy.write_bytes(storage.read(path))
        try:
            file = LanceFileReader(str(copy))
            held = file.metadata().schema.names
            names = held if columns is None else [name for name in columns if name in set(held)]
            table = file.read_all().to_table().select(names)
            check_keys(table)
        except (pa.ArrowException, OSError, ValueError, RuntimeError) as error:
            text = str(error).splitlines()[0]
            raise CorruptDataError(
                f"a Lance file cannot be read: {text}", do_next="run binlake fsck", path=path
            ) from error
    return table.replace_schema_metadata(None)
