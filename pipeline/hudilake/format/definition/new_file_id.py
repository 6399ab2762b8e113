"""The ids of file groups that are no buckets.

It stands alone: writes, clusterings and the tagging of rows all make such ids.
"""

from __future__ import annotations

import hashlib
import uuid


def new_file_id(table_name: str, instant: str, partition_path: str, *number: str) -> str:
    """The id of a file group that a commit creates: ``<uuid>-0``, as Hudi's.

    Every attempt of every task computes the same id, so a retried task overwrites its own file.

    Args:
        table_name: of the table.
        instant: of the commit.
        partition_path: of the file group.
        number: distinguishes the groups that the commit creates in the partition; one text or several.
    """
    text = "\n".join((table_name, instant, partition_path, *number))
    digest = hashlib.blake2b(text.encode(), digest_size=16).digest()
    return f"{uuid.UUID(bytes=digest, version=4)}-0"
