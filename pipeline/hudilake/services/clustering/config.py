"""What a clustering takes, how its base files are written, and what its tasks share."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from math import ceil
from typing import Final

import pyarrow as pa

from hudilake.format.definition.metadata_partition import MetadataPartition
from hudilake.format.definition.schema import PARTITION_PATH_FIELD
from hudilake.format.layout.order import Order
from hudilake.policies import ClusteringPolicy, FileSizePolicy
from hudilake.services.compaction.config import CompactionConfig
from hudilake.services.compaction.task import CompactionContext
from hudilake.write.form import BaseFileForm

#: The threads of a task: as many as a usual executor has cores.
THREADS = 2


@dataclass(frozen=True)
class ClusteringConfig:
    """The settings of a table's clustering. Picklable.

    Args:
        policy: what is taken, and the order of the rows.
        sizes: how large files become.
        files: how base files are written, as a compaction writes them.
        threads: of a task.
    """

    policy: ClusteringPolicy = field(default_factory=ClusteringPolicy)
    sizes: FileSizePolicy = field(default_factory=FileSizePolicy)
    files: CompactionConfig = field(default_factory=CompactionConfig)
    threads: int = THREADS

    @property
    def order(self) -> Order | None:
        """The wanted order of the rows; None to keep theirs."""
        wanted = self.policy.order_by
        return Order(wanted, self.policy.seed) if wanted is not None else None

    def outputs(self, size: int) -> int:
        """Into how many files bytes go: as few as are needed if a file may be a tenth larger than the target."""
        return max(1, ceil(size / (1.1 * self.sizes.target_bytes)))


FILE_NAME: Final = "_hoodie_file_name"


@dataclass(frozen=True)
class LayOutContext:
    """The context of a clustering's tasks. Picklable.

    Args:
        merging: how slices are merged and base files written; its instant is the clustering's.
        table_name: of the table.
        order: of the rows; None to keep theirs.
        config: how large files become, and the threads of a task.
        states_keys: whether results say which keys a file has, for an index.
    """

    merging: CompactionContext
    table_name: str
    order: Order | None
    config: ClusteringConfig
    states_keys: bool = False

    @property
    def form(self) -> BaseFileForm:
        """Of the base files, by the order of their rows; without a filter of keys in an append table, where nobody
        looks for a key."""
        form = replace(self.merging.config.form, order=self.order)
        return form if self.merging.kind.keeps(MetadataPartition.BLOOM_FILTERS) else replace(form, bloom_kind=None)

    @cached_property
    def stored(self) -> pa.Schema:
        """The columns of a row that do not follow from its new file: without the partition path and the file name."""
        left = (PARTITION_PATH_FIELD, FILE_NAME)
        return pa.schema([field for field in self.merging.schema if field.name not in left])
