"""What a backfill has to do: which rows it reads, in which portions, and which of them the table has."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from binlake.decode.changes import SourceTable
from binlake.load.backfill.csv_rows import CsvRows
from binlake.load.backfill.inputs import Input, InputForm
from binlake.load.backfill.pieces import InputPortion, Piece, Place, opened, pieces_of, portions
from binlake.load.backfill.request import BackfillRequest
from binlake.load.backfill.row_plan import RowPlan, names_in, plan_rows
from binlake.load.backfill.spool import batches_of, spool
from binlake.load.backfill.stored_plan import StoredPlan, check_unchanged, newest_of
from binlake.position.recorded import RecordedBackfill
from binlake.tables.lake_table import LakeTable
from hudilake.clock import new_uuid
from hudilake.errors import BadInputError
from hudilake.format.definition.column_names import lake_name
from hudilake.storage import Storage


@dataclass(frozen=True)
class Work:
    """What a backfill reads, and where it begins.

    Args:
        place: of the files that it reads.
        rows: how their rows become rows of the lake.
        portions: all of them.
        recorded: what the commits say, but the portion and the group.
        first: the number of the first portion that the table does not have.
    """

    place: Place
    rows: RowPlan
    portions: tuple[InputPortion, ...]
    recorded: RecordedBackfill
    first: int = 0

    @property
    def left(self) -> tuple[InputPortion, ...]:
        """The portions that the table does not have."""
        return self.portions[self.first :]


@dataclass(frozen=True)
class WorkPlanner:
    """Plans the work of one backfill.

    Args:
        table: open.
        source: its name.
        request: what to write.
        given: the input.
        state: the directory of this backfill's plan and spooled rows.
        options: of the state's store.
        declared: the source's columns that the settings declare.
    """

    table: LakeTable
    source: SourceTable
    request: BackfillRequest
    given: Input
    state: Storage
    options: dict[str, str]
    declared: tuple[str, ...] = ()

    @property
    def _name(self) -> str:
        return self.request.name(self.given.text)

    def left(self) -> Work | None:
        """What is left to do; None if the table holds all of the input.

        Raises BadInputError for an interrupted backfill whose input has changed, and as ``plan_rows``.
        """
        if self.request.restart:
            return self._anew()
        stored, begun = StoredPlan.load(self.state), newest_of(self.table.hudi, self._name)
        if begun is None or (stored is not None and stored.run != begun.run):
            return self._anew()  # no portion of the newest run was committed
        if not begun.last:
            return self._rest(stored, begun)
        StoredPlan.forget(self.state)
        unchanged = self.given.kind is InputForm.QUERY or self.given.digest == begun.input
        return None if unchanged else self._anew()

    def whole(self) -> Work:
        """All of the input, without a plan that is kept."""
        pieces, rows = self._read()
        return self._work(self._plan("", pieces), rows)

    def _anew(self, run: str | None = None) -> Work:
        StoredPlan.forget(self.state)
        pieces, rows = self._read()
        plan = self._plan(run or new_uuid(), pieces)
        plan.save(self.state)
        return self._work(plan, rows)

    def _rest(self, stored: StoredPlan | None, begun: RecordedBackfill) -> Work:
        """The portions that an interrupted run did not commit."""
        check_unchanged(self.given, stored, begun)
        work = self._anew(begun.run) if stored is None else self._work(stored, self._stored_rows(stored))
        if len(work.portions) != begun.portions:
            raise BadInputError(
                f"this backfill was interrupted, and had {begun.portions} portions; now there are {len(work.portions)}",
                do_next="give the same --portion-rows as before, or begin anew with --restart",
                path=self.given.text,
            )
        return dataclasses.replace(work, first=begun.portion + 1)

    def _stored_rows(self, stored: StoredPlan) -> RowPlan:
        with opened(self._place(stored).storage(), stored.pieces[0].path) as file:
            return plan_rows(self.table, self.source, self.request, file.schema_arrow, self.declared)

    def _read(self) -> tuple[list[Piece], RowPlan]:
        """The pieces of the input; rows that are not read from its own files are spooled."""
        given, request = self.given, self.request
        if given.kind is InputForm.PARQUET:
            pieces, schemas = pieces_of(given.place.storage(), (file.path for file in given.files))
            plan = plan_rows(self.table, self.source, request, schemas[given.files[0].path], self.declared)
            for path, schema in schemas.items():
                if missing := [name for name in plan.names if name not in schema.names]:
                    raise BadInputError(
                        f"a file of the input has no column {missing[0]!r}, and the first file has it",
                        do_next="leave the file out, or read the files by a query",
                        path=f"{given.place.uri}/{path}",
                    )
            return pieces, plan
        if given.kind is InputForm.CSV:
            csv_rows = self._csv_rows()
            schema = csv_rows.schema()
            plan = plan_rows(self.table, self.source, request, schema, self.declared)
            texts = csv_rows.batches(schema, plan.names)
            return [spooled.piece for spooled in spool(self.state, "rows-", texts, request.portion_rows)], plan
        with batches_of(given) as reader:
            rows = plan_rows(self.table, self.source, request, reader.schema, self.declared)
            batches = (batch.select(list(rows.names)) for batch in reader)
            return [spooled.piece for spooled in spool(self.state, "rows-", batches, request.portion_rows)], rows

    def _csv_rows(self) -> CsvRows:
        """The rows of CSV files: by the types of the table's columns, under the names that the files have for them."""
        table, request = self.table.hudi, self.request
        known = {field.name: field.type for field in table.schema}
        known |= {name: known[lake_name(name)] for name in request.columns if lake_name(name) in known}
        fields = table.config.record_key_fields
        if request.key is not None and len(request.key) == len(fields):
            known |= {name: known[field] for name, field in zip(request.key, fields, strict=True)}
        wanted = {name.lower() for name in request.columns} | names_in(request.where)
        return CsvRows(self.given, known, frozenset(wanted))

    def _plan(self, run: str, pieces: list[Piece]) -> StoredPlan:
        given = self.given
        spooled = given.kind is not InputForm.PARQUET
        return StoredPlan(run, given.digest, given.files, spooled, self.request.portion_rows, tuple(pieces))

    def _place(self, plan: StoredPlan) -> Place:
        return Place(self.state.uri, self.options) if plan.spooled else self.given.place

    def _work(self, plan: StoredPlan, rows: RowPlan) -> Work:
        cut = tuple(portions(plan.pieces, plan.portion_rows))
        recorded = RecordedBackfill(self._name, plan.input, plan.run, 0, len(cut), "", rows.written)
        return Work(self._place(plan), rows, cut, recorded)
