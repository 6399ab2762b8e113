"""Random histories: another process lays the rows out anew between the batches of a stream, with late events, repeated
ones and dying processes, and after every batch the table is what the model says."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hudilake.policies import ClusteringPolicy, Curve, FileSizePolicy, IndexType, OrderPolicy, TableType
from hudilake.services.clustering.config import ClusteringConfig
from hudilake.table.table import HudiTable
from tests.binlake.rows.upsert.history import KEYED, ROUNDS, Plan, Round, World, plans
from tests.binlake.rows.upsert.ingest import PATH, TYPES, Kind
from tests.hudilake.services.clustering.made import clustered
from tests.hypothesis_profile import scaled

INDEXES: tuple[IndexType, ...] = ("simple", "global_bloom", "in_memory", "record_index", "external")
TABLE_TYPES: tuple[TableType, ...] = ("merge_on_read", "copy_on_write")
#: Files of any size, and a file group for nearly every row.
SIZES = (FileSizePolicy(), FileSizePolicy(target_bytes=1, small_bytes=1))
KINDS = [Kind(table_type, index, sizes) for table_type in TABLE_TYPES for index in INDEXES for sizes in SIZES]
ORDERABLE = [name for name in TYPES if name != "flag"]


class ClusteredWorld(World):
    """A world whose table is clustered after every round."""

    config: ClusteringConfig
    clusterings = 0

    def _live_round(self, one: Round) -> None:
        super()._live_round(one)
        storage = self.ingest.root.sub(PATH)
        if HudiTable.exists(storage):
            table = HudiTable.open(storage)
            table.rollback_pending()
            if clustered(table, self.config) and self.instants:
                self.clusterings += 1
                self.check(with_rs=self.clusterings % self.rs_every == 0)


def configs() -> st.SearchStrategy[ClusteringConfig]:
    """Clusterings by any columns, along any curve, into any number of files."""
    curves: tuple[Curve, ...] = ("linear", "z_order", "hilbert")
    order = st.builds(
        OrderPolicy,
        columns=st.lists(st.sampled_from(ORDERABLE), min_size=1, max_size=3, unique=True).map(tuple),
        curve=st.sampled_from(curves),
        values=st.sampled_from(("sampled", "direct")),
    )
    policy = st.builds(
        ClusteringPolicy, order_by=st.none() | order, select=st.sampled_from(("all", "changed", "small"))
    )
    return st.builds(ClusteringConfig, policy, st.sampled_from(SIZES))


@settings(
    max_examples=scaled(60, divisor=10),
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(
    plans(KEYED, (0, 2), KINDS),
    ROUNDS,
    configs(),
)
def test_no_change_is_lost(plan: Plan, rounds: Sequence[Round], config: ClusteringConfig) -> None:
    with tempfile.TemporaryDirectory(prefix="binlake-history-") as directory:
        here = ClusteredWorld(plan, Path(directory))
        here.config = config
        try:
            here.live(rounds)
        finally:
            here.ingest.pool.shutdown()
