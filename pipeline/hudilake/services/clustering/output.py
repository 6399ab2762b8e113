"""The rows of a unit written as base files of about the same size, each a new file group."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudilake.format.definition.new_file_id import new_file_id
from hudilake.format.definition.schema import COMMIT_TIME_FIELD, PARTITION_PATH_FIELD, RECORD_KEY_FIELD
from hudilake.format.files.file_group_write import KeyChanges, WriteResult
from hudilake.format.files.names import BaseFileName, in_partition, marker_path
from hudilake.format.files.parquet_file import encode_parquet
from hudilake.services.clustering.config import FILE_NAME, LayOutContext
from hudilake.services.clustering.plan import ClusteringUnit
from hudilake.services.clustering.spill import Longs, SpilledRows
from hudilake.storage.base import Storage
from hudilake.write.aside import AsideRows
from hudilake.write.base_sink import BaseFileSink, mapped
from hudilake.write.group_writer import NO_KEYS
from hudilake.write.merge import STRETCH_ROWS

#: Stretches of ordered rows that are encoded to learn how many bytes rows take in a file, and the most rows of each.
_PROBES, _PROBE_ROWS = 16, 8_192
_CONSTANT: Final = pa.dictionary(pa.int32(), pa.string())


def write_files(
    storage: Storage, context: LayOutContext, unit: ClusteringUnit, rows: SpilledRows, directory: Path
) -> list[WriteResult]:
    """Write the rows in their order, several files at once. Arguments and errors as ``lay_out``."""
    if not len(rows.order):
        return []
    with AsideRows.open(rows.paths) as aside:
        output = _Output(storage, context, unit, rows, aside, directory)
        parts = output.cut()
        with ThreadPoolExecutor(min(context.config.threads, len(parts))) as pool:
            return list(pool.map(output.write, range(len(parts)), parts))


@dataclass(frozen=True)
class _Output:
    storage: Storage
    context: LayOutContext
    unit: ClusteringUnit
    rows: SpilledRows
    aside: AsideRows
    directory: Path

    def cut(self) -> Sequence[Longs]:
        """The rows of each file: parts of the order that take about the same number of bytes in a file, and end where
        the order has a seam."""
        from hudilake.format.layout.cuts import ends  # needs compiled loops, seconds to import

        order = self.rows.order
        heavier = np.cumsum(self.rows.weights[order] * self._densities())
        count = min(self.context.config.outputs(int(heavier[-1])), len(order))
        return [part for part in np.split(order, ends(heavier, count, self.rows.seams)) if len(part)]

    def _densities(self) -> npt.NDArray[np.float64]:
        """For each row, in the order, how many bytes in a file a byte of its weight takes: that of the nearest stretch
        of rows that is encoded to learn it."""
        order, form = self.rows.order, self.context.form
        size = min(_PROBE_ROWS, len(order) // (4 * _PROBES) + 1)
        densities, parts = [], [part for part in np.array_split(order, _PROBES) if len(part)]
        for part in parts:
            places = part[len(part) // 2 :][:size]
            sizes = (
                len(encode_parquet(self.restored(some), form.compression, form.compression_level))
                for some in (places, places[:1])
            )
            weight = int(self.rows.weights[places[1:]].sum())
            densities.append(max(0, next(sizes) - next(sizes)) / weight if weight else 1.0)
        return np.repeat(densities, [len(part) for part in parts])

    def restored(self, places: Longs) -> pa.Table:
        """The rows with these numbers, with all columns of a base file."""
        rows = self.aside.take(places)
        times = pa.array(self.rows.times, pa.string())
        constant = pa.array(np.zeros(len(places), dtype=np.int32))
        same = pa.DictionaryArray.from_arrays(constant, pa.array([self.unit.partition_path]))
        coded = rows.column(COMMIT_TIME_FIELD)
        given = {
            COMMIT_TIME_FIELD: pa.chunked_array([times.take(code) for code in coded.chunks], pa.string()),
            PARTITION_PATH_FIELD: same,
            FILE_NAME: same,  # the sink knows the name
        }
        columns = [given[name] if name in given else rows.column(name) for name in self.schema.names]
        return pa.Table.from_arrays(columns, schema=self.schema)

    @property
    def schema(self) -> pa.Schema:
        """The columns of a base file; texts that are the same in all rows are dictionaries."""
        constant = (PARTITION_PATH_FIELD, FILE_NAME)
        fields = self.context.merging.schema
        return pa.schema([pa.field(f.name, _CONSTANT) if f.name in constant else f for f in fields])

    def write(self, number: int, places: Longs) -> WriteResult:
        """Write one file."""
        merging, path = self.context.merging, self.unit.partition_path
        first = self.unit.sources[0].file_id
        name = BaseFileName(
            new_file_id(self.context.table_name, merging.instant, path, first, str(number)), merging.instant
        )
        self.storage.write(marker_path(merging.instant, path, str(name)), b"")
        target, form = self.directory / f"file-{number}", self.context.form
        sink = BaseFileSink(target, self.schema, str(name), len(places), merging.indexed_columns, form)
        keys: list[pa.Array] = []
        with contextlib.ExitStack() as stack:
            stack.callback(sink.abandon)
            for rows in self._stretches(places):
                sink.write(rows)
                keys += rows.column(RECORD_KEY_FIELD).chunks if self.context.states_keys else []
            stack.pop_all()
        written = sink.close(merging.avro_schema_json)
        content = mapped(target)
        self.storage.write(in_partition(path, str(name)), content)
        target.unlink()
        low, high = written.keys or ("", "")
        return WriteResult(
            partition_path=path,
            file_id=name.file_id,
            file_name=str(name),
            size_bytes=len(content),
            num_upserts=written.rows,
            num_deletes=0,
            min_record_key=low,
            max_record_key=high,
            ranges=written.ranges,
            bloom=written.bloom,
            keys=KeyChanges(path, name.file_id, pa.concat_arrays(keys), NO_KEYS) if keys else None,
            num_inserts=0,
            contents=written.contents,
        )

    def _stretches(self, places: Longs) -> Iterator[pa.Table]:
        """The rows with these numbers, as many at once as a row group holds."""
        most_rows, most_bytes = self.context.form.at_once
        bytes_a_row = int(self.rows.weights[places].mean())
        step = max(1, min(STRETCH_ROWS, most_rows, most_bytes // bytes_a_row))
        for start in range(0, len(places), step):
            yield self.restored(places[start : start + step])
