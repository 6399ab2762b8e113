"""``binlake verify``: the lake against the live source, row by row, and the repair of what differs."""

from __future__ import annotations

from typing import Annotated

import typer

from binlake.cli.options import LakeConf, Tables
from binlake.cli.reports import each
from binlake.cli.table_options import chosen
from binlake.cli.text import duration, number, say, say_json
from binlake.cli.typer_extras import options_of
from binlake.proof.verify.result import RowDifference, TableResult
from binlake.proof.verify.run import Verifier, VerifyOptions
from binlake.settings import Settings
from binlake.settings.database import ReplicaSettings
from binlake.tables.catalog import CatalogTable
from binlake.tables.other_rows import having
from hudilake.errors import CorruptDataError, TransientError
from hudilake.format.definition.kind_support import TableOperation
from hudilake.wording import counted

#: The exit code where nothing differs, but tables could not be compared.
NOT_COMPARED = 81


def verify_options(
    repair: Annotated[
        bool, typer.Option("--repair", help="Write the source's rows where the lake differs, in a commit of their own.")
    ] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on after what the last run compared.")] = False,
    wait: Annotated[
        bool, typer.Option("--wait/--no-wait", help="Wait for the stream, or take the lake as it is.")
    ] = True,
    wait_seconds: Annotated[float, typer.Option(help="The longest wait for the stream.", min=0)] = 120.0,
    replica: Annotated[str | None, typer.Option(help="Read this replica of the source.", metavar="HOST[:PORT]")] = None,
    rows_per_second: Annotated[int | None, typer.Option(help="Read at most so many rows a second.", min=1)] = None,
    limit: Annotated[int, typer.Option(help="How many differences of a table to print.", min=0)] = 20,
) -> VerifyOptions:
    """The options of a run."""
    return VerifyOptions(
        repair=repair,
        resume=resume,
        wait_s=wait_seconds if wait else None,
        replica=_replica(replica),
        rows_per_second=rows_per_second,
        listed=limit,
    )


@options_of(options=verify_options)
def verify(
    conf: LakeConf,
    options: VerifyOptions,
    tables: Tables = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON line for every table.")] = False,
) -> None:
    """Compare tables with the live source at one position of its binlog, and repair them on demand.

    Exit code 0: every table was compared, and is equal or repaired. 66: something differs. 75: rows are not settled.
    81: nothing of that, but tables could not be compared; the output says which and why. A history table beside the
    table of its rows, and a wide table, are named and do not count: the table that they follow from is compared.
    """
    settings = Settings.load(conf)
    places = chosen(settings, tables)
    having(places, TableOperation.VERIFY, named=bool(tables))
    with Verifier(settings, options) as verifier:
        results: list[TableResult] = []

        def act(place: CatalogTable) -> int:
            code = 0
            for result in verifier.tables(place, named=bool(tables)):
                results.append(result)
                _write(result) if as_json else _print(result)
                code = code or exit_code(result)
            return code

        code = each(places, act) or (NOT_COMPARED if any(map(_counts, results)) else 0)
    if not places and not as_json:
        say("the lake holds no tables")
    raise typer.Exit(code)


def exit_code(result: TableResult) -> int:
    """0; that of corrupt data if something differs, that of a passing error if something could not be settled."""
    if result.different:
        return CorruptDataError.exit_code
    return TransientError.exit_code if result.open else 0


def _counts(result: TableResult) -> bool:
    """Whether somebody expected a comparison that there was not."""
    return bool(result.skipped) and not result.derived


def _replica(text: str | None) -> ReplicaSettings | None:
    if text is None:
        return None
    host, colon, port = text.rpartition(":")
    if not colon:
        return ReplicaSettings(host=text)
    if not port.isdigit() or not host:
        raise typer.BadParameter("give a host, and perhaps a port after a colon", param_hint="--replica")
    return ReplicaSettings(host=host, port=int(port))


def _write(result: TableResult) -> None:
    say_json({**result.to_json(), "different": result.different})


def _print(result: TableResult) -> None:
    if result.skipped:
        say(f"{result.table}: not compared: {result.skipped}")
        return
    say(f"{result.table}: {_verdict(result)}")
    say(f"  {_figures(result)}")
    for line in (*result.wrong, *(f"not compared: {note}" for note in result.notes)):
        say(f"  {line}")
    for difference in result.differences:
        say(f"  {_row(difference)}")
    if (left := result.total - len(result.differences)) > 0:
        say(f"  and {number(left)} more; see --limit")
    if result.advice:
        say(f"  next: {result.advice}")
    if result.behind:
        say("  the lake did not reach the source's position in time: is the stream running? See --wait-seconds")


def _verdict(result: TableResult) -> str:
    kinds = ", ".join(f"{number(count)} {kind}" for kind, count in sorted(result.differing.items()))
    if result.repaired and not result.different:
        return f"repaired, equal now ({kinds})"
    if result.different:
        done = f"; {number(result.repaired)} of them repaired" if result.repaired else ""
        return f"different ({kinds or 'its columns'}){done}"
    return f"not settled ({counted(result.unsettled, 'row')})" if result.open else "equal"


def _figures(result: TableResult) -> str:
    parts = [counted(result.source_rows, "row"), f"at {', '.join(result.positions)}"]
    if result.changed_since:
        parts.append(f"{number(result.changed_since)} more were changed since and looked at later")
    if result.changing:
        parts.append(f"{number(result.changing)} of them change all the time")
    if result.ranges_differing:
        parts.append(
            f"{number(result.ranges_differing)} of {number(result.ranges)} ranges of keys differed at first, "
            f"{counted(result.fetched, 'row')} fetched by their keys"
        )
    if result.unsettled:
        parts.append(f"{counted(result.unsettled, 'row')} not settled")
    return "; ".join([*parts, duration(result.seconds * 1000)])


def _row(difference: RowDifference) -> str:
    key = ", ".join(f"{name}={value}" for name, value in difference.key.items())
    cells = "; ".join(f"{c.column}: source {c.source}, lake {c.lake}" for c in difference.cells)
    places = f" in {', '.join(difference.places)}" if difference.places else ""
    order = f" with {difference.order}" if difference.order else ""
    return f"{difference.kind} {key}{places}{order}" + (f": {cells}" if cells else "")
