"""What all units of a clustering share."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import pyarrow as pa

from hudilake.format.layout.order import Order
from hudilake.services.clustering.config import ClusteringConfig
from hudilake.services.compaction.task import CompactionContext
from hudilake.write.form import BaseFileForm

PARTITION_PATH: Final = "_hoodie_partition_path"
FILE_NAME: Final = "_hoodie_file_name"


@dataclass(frozen=True)
class LayOutContext:
    """The context of a clustering's tasks. Picklable.

    Args:
        merging: how slices are merged and base files written; its instant is the clustering's.
        table_name: of the table.
        order: of the rows; None to keep theirs.
        config: how large files become, and the threads of a task.
        keeps_keys: whether results say which keys a file has, for an index.
    """

    merging: CompactionContext
    table_name: str
    order: Order | None
    config: ClusteringConfig
    keeps_keys: bool = False

    @property
    def form(self) -> BaseFileForm:
        """Of the base files, by the order of their rows; without a filter of keys in an append table, where nobody
        looks for a key."""
        form = replace(self.merging.config.form, order=self.order)
        return replace(form, bloom_kind=None) if self.merging.appends else form

    @cached_property
    def stored(self) -> pa.Schema:
        """The columns of a row that do not follow from its new file: without the partition path and the file name."""
        left = (PARTITION_PATH, FILE_NAME)
        return pa.schema([field for field in self.merging.schema if field.name not in left])
