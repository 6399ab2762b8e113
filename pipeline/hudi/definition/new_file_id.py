"""The ids of file groups that are no buckets."""

from __future__ import annotations

import mmh3


def new_file_id(table_name: str, instant: str, partition_path: str, number: str) -> str:
    """The id of a file group that a commit creates: a stable digest in the shape of a UUID, then ``-0``.

    Every attempt of every task computes the same id, so a retried task overwrites its own file.

    Args:
        table_name: of the table.
        instant: of the commit.
        partition_path: of the file group.
        number: distinguishes the groups that the commit creates in the partition.
    """
    text = f"{table_name}\n{instant}\n{partition_path}\n{number}"
    digest = mmh3.mmh3_x64_128_digest(text.encode()).hex()
    return f"{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:32]}-0"
