"""What a clustering takes, and how its base files are written."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil

from hudilake.format.layout.order import Order
from hudilake.policies import ClusteringPolicy, FileSizePolicy
from hudilake.services.compaction.config import CompactionConfig

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
