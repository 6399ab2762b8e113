"""binlake's side: a copy-on-write table with a metadata table, clustered by one task with two threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, TypeVar
from uuid import NAMESPACE_URL, uuid5

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.layouts.files import bytes_of, hudi_files
from bench.layouts.rows import SCHEMA
from bench.layouts.sides import LAYOUTS, Layout, Sizes
from hudilake.clock import monotonic_s
from hudilake.format.definition.config import TableConfig
from hudilake.format.definition.kind import TableKind
from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.files.file_group_write import FileGroupWrite
from hudilake.metadata.config import MetadataConfig
from hudilake.policies import ClusteringPolicy, FileSizePolicy
from hudilake.services.clustering.completion import complete
from hudilake.services.clustering.config import ClusteringConfig
from hudilake.services.clustering.job import execute, prepare
from hudilake.services.clustering.scheduling import schedule
from hudilake.storage import open_storage
from hudilake.table.table import HudiTable
from hudilake.write.group_writer import BaseWriter

T = TypeVar("T")
R = TypeVar("R")
_ORDER: Final = "_binlake_order"


def one_by_one(function: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """Tasks one after the other: each has two threads of its own."""
    return [function(item) for item in items]


class Ours:
    """A table of our own."""

    def layouts(self) -> tuple[str, ...]:
        return tuple(LAYOUTS)

    def load(self, path: Path, parts: Path, sizes: Sizes) -> None:
        schema = pa.schema([*SCHEMA, pa.field(_ORDER, pa.int64())])
        config = TableConfig(path.name, ("id",), _ORDER, 0, kind=TableKind("copy_on_write", "simple"))
        table = HudiTable.create(open_storage(path.as_uri(), {"fsync": "false"}), config, schema, MetadataConfig())
        instant, results = table.begin(), []
        writer = BaseWriter(table.write_context(instant), {})
        for part in sorted(parts.iterdir()):
            rows = pq.read_table(part)
            rows = rows.append_column(_ORDER, pa.array(np.ones(rows.num_rows, dtype=np.int64)))
            rows = rows.add_column(0, RECORD_KEY_FIELD, rows.column("id").cast(pa.string())).sort_by(RECORD_KEY_FIELD)
            group = FileGroupWrite("", f"{uuid5(NAMESPACE_URL, part.name)}-0", upserts=rows)
            results += writer.write(table.storage, group)
        table.commit(instant, results)

    def cluster(self, path: Path, layout: Layout, files: float) -> float:
        sizes = FileSizePolicy(target_bytes=round(bytes_of(self.files(path)) / files), small_bytes=1)
        policy = ClusteringPolicy(order_by=layout.policy, select="all")
        config = ClusteringConfig(policy, sizes)
        started = monotonic_s()
        table = HudiTable.open(open_storage(path.as_uri()))
        requested = schedule(table, config)
        job = prepare(table, requested, config) if requested is not None else None
        if job is None:
            raise RuntimeError("nothing was planned")
        complete(table, job, execute(job, one_by_one))
        return monotonic_s() - started

    def files(self, path: Path) -> list[Path]:
        return hudi_files(path)

    def close(self) -> None:
        """Nothing was started."""
