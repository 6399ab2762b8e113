"""Libraries that write tables without Spark: deltalake, pypaimon and hudi-rs, each by its own upsert or merge.

They get the newest changes ready made (``bench.floor``): no Kafka, no checkpoint, no stream that would go
on where it ended.
"""

from __future__ import annotations

import importlib
import subprocess
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from bench.events import Shape
from bench.floor import DELETED, NUMBER, Sink
from bench.spec import Spec
from embedded import hudi_rs
from hudilake.read import TableReader

_KIND = "row_kind"


class DeltaRs:
    """``DeltaTable.merge`` of deltalake. It rewrites files: this library writes no deletion vectors."""

    version = ""

    def __init__(self, spec: Spec) -> None:
        self._lake = spec.lake
        self._library: Any = importlib.import_module("deltalake")
        self.version = f"deltalake {version('deltalake')}"

    def write(self, shape: Shape, number: int, changes: pa.Table) -> None:
        """One merge; the table is created by the first batch."""
        names = list(shape.types())
        if number == 0:
            self._library.DeltaTable.create(str(self._lake / shape.table), _nullable(changes.select(names).schema))
        values = {name: f"s.{name}" for name in names}
        source = changes.drop_columns([NUMBER])
        merger = self._table(shape).merge(
            source, "t.id = s.id", source_alias="s", target_alias="t", writer_properties=self._zstd()
        )
        merger = merger.when_matched_delete(f"s.{DELETED}").when_matched_update(values)
        merger.when_not_matched_insert(values, f"NOT s.{DELETED}").execute()

    def contents(self, shape: Shape) -> pa.Table:
        """By its own reader."""
        return self._table(shape).to_pyarrow_table()

    def close(self) -> None:
        """No effect: nothing is open."""

    def _table(self, shape: Shape) -> Any:  # noqa: ANN401 - the library is not among the project's
        return self._library.DeltaTable(str(self._lake / shape.table))

    def _zstd(self) -> Any:  # noqa: ANN401 - as above
        return self._library.WriterProperties(compression="ZSTD", compression_level=1)


class PyPaimon:
    """A bucketed, write-only primary-key table, written by pypaimon with its Rust (``write.native.enabled``)."""

    version = ""

    def __init__(self, spec: Spec) -> None:
        self._library: Any = importlib.import_module("pypaimon")
        self._buckets = spec.workload.buckets
        self._catalog = self._library.CatalogFactory.create({"warehouse": str(spec.lake)})
        self._catalog.create_database("bench", True)
        self.version = f"pypaimon {version('pypaimon')} with pypaimon-rust {version('pypaimon-rust')}"

    def write(self, shape: Shape, number: int, changes: pa.Table) -> None:
        """One commit; deletes are row kinds, as with Paimon on Spark."""
        kinds = pc.if_else(changes.column(DELETED), "-D", "+U")
        rows = changes.select(list(shape.types())).append_column(_KIND, kinds)
        if number == 0:
            self._create(shape, rows.schema)
        builder = self._table(shape).new_batch_write_builder()
        write, commit = builder.new_write(), builder.new_commit()
        write.write_arrow(rows)
        commit.commit(write.prepare_commit())
        write.close()
        commit.close()

    def contents(self, shape: Shape) -> pa.Table:
        """By its own reader, in Python."""
        builder = self._table(shape).new_read_builder()
        return builder.new_read().to_arrow(builder.new_scan().plan().splits())

    def close(self) -> None:
        """No effect: nothing is open."""

    def _table(self, shape: Shape) -> Any:  # noqa: ANN401 - as above
        return self._catalog.get_table(f"bench.{shape.table}")

    def _create(self, shape: Shape, rows: pa.Schema) -> None:
        options = {
            "bucket": str(self._buckets),
            "write-only": "true",
            "rowkind.field": _KIND,
            "file.format": "parquet",
            "file.compression": "zstd",
            "write.native.enabled": "true",
            "commit.native.enabled": "true",
        }
        schema = self._library.Schema.from_pyarrow_schema(_nullable(rows), primary_keys=["id"], options=options)
        self._catalog.create_table(f"bench.{shape.table}", schema, False)


class HudiRs:
    """hudi-rs' ``upsert`` and ``delete_keys``, two commits a batch, in a process of its own that this program feeds."""

    version = f"hudi-rs {hudi_rs.VERSION}"

    def __init__(self, spec: Spec) -> None:
        self._place, self._lake = spec.place, spec.lake
        (shape,) = spec.workload.shapes()
        program = hudi_rs.program(Path(__file__).parent / "hudi_rs", release=True)
        self._process = subprocess.Popen(
            [program, self._lake / shape.table, *_HUDI_RS],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
            bufsize=1,
        )

    def write(self, shape: Shape, number: int, changes: pa.Table) -> None:
        """Upsert, then delete."""
        rows = changes.select(list(shape.types()))
        deleted = changes.column(DELETED)
        self._carry_out("upsert", rows.filter(pc.invert(deleted)))
        self._carry_out("delete", rows.filter(deleted).select(["id"]))

    def contents(self, shape: Shape) -> pa.Table:
        """By hudilake: hudi-rs 0.5.0, the newest on PyPI, gives up at the local times of these log files."""
        reader = TableReader.open((self._lake / shape.table).as_uri())
        return pa.Table.from_batches(list(reader.batches(reader.plan())))

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(30)

    def _carry_out(self, command: str, rows: pa.Table) -> None:
        """Raises RuntimeError with hudi-rs' words where it refuses."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        if not len(rows):
            return
        file = self._place / "batch.arrow"
        with pa.ipc.new_file(file, rows.schema) as out:
            out.write_table(rows)
        self._process.stdin.write(f"{command} {file}\n")
        answer = self._process.stdout.readline().strip()
        if answer != "ok":
            raise RuntimeError(f"hudi-rs, {command}: {answer or 'the process ended'}")


#: The kind of its table, and the index that it has by default.
_HUDI_RS = ("mor", "record")
SINKS: dict[str, Callable[[Spec], Sink]] = {"deltalake": DeltaRs, "pypaimon": PyPaimon, "hudi-rs": HudiRs}


def _nullable(schema: pa.Schema) -> pa.Schema:
    """All columns but the key may be null."""
    return pa.schema([field.with_nullable(field.name != "id") for field in schema])
