"""The ids of a table's file groups, as a writer finds or makes them."""

from __future__ import annotations

from dataclasses import replace

from hudilake.errors import ConfigError
from hudilake.format.definition.bucket import bucket_of_file_id, next_file_id
from hudilake.format.definition.bucketing import GroupNames
from hudilake.format.files.view import FileSlice
from hudilake.table.table import HudiTable
from hudilake.wording import counted


def group_names(table: HudiTable, path: str) -> GroupNames:
    """The ids of the file groups of a table with buckets; nothing is known of one without.

    A file group keeps the id that its writer gave it. One that is made in the place of a replaced one gets another id,
    for readers see no file of the replaced id.

    Args:
        table: as of its last refresh.
        path: of the table below the lake's root, for the error.

    Raises ConfigError if there is a file group of a bucket that the table does not have, CorruptDataError,
    StorageError.
    """
    computed = GroupNames(table.config.name, table.config.bucketing)
    if not table.config.kind.computed:
        return computed
    named: dict[tuple[str, int], str] = {}
    replaced = {} if table.config.kind.hashes else table.timeline.replaced()
    for partition_path, file_id in replaced:
        if file_id[:8].isdigit():
            bucket = bucket_of_file_id(file_id)
            first = name = computed.of(partition_path, bucket)
            while (instant := replaced.get((partition_path, name))) is not None:
                name = next_file_id(table.config.name, partition_path, bucket, instant)
            if name != first:
                named[partition_path, bucket] = name
    for piece in table.file_slices():
        place = place_of(table, piece, path)
        if place[1] >= (count := computed.bucketing.count(place[0])):
            raise ConfigError(
                f"another writer wrote rows to bucket {place[1]} of a table of {counted(count, 'bucket')}",
                do_next="stop that writer, whose bucket count differs, and load the table again under a new path",
                table=path,
                partition=place[0],
                file_group=piece.file_id,
            )
        if piece.file_id != computed.of(*place) or place in named:
            named[place] = piece.file_id
    return replace(computed, named=named)


def place_of(table: HudiTable, piece: FileSlice, path: str) -> tuple[str, int]:
    """The partition path and the bucket of a file slice. Raises ConfigError for a file group of no bucket.

    Arguments as ``group_names``.
    """
    try:
        return piece.partition_path, table.config.bucketing.bucket_of(piece.partition_path, piece.file_id)
    except ValueError as error:
        raise ConfigError(
            f"another writer wrote rows to a file group that is no bucket ({error})",
            do_next="stop that writer, whose index differs, and load the table again under a new path",
            table=path,
            partition=piece.partition_path,
            file_group=piece.file_id,
        ) from error
