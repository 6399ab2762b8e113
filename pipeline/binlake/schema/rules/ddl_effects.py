"""What DDL statements do to the lake tables of the tables that they name, as values: events, effects, their history."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from binlake.decode.changes import FILE_BITS, POSITION_BITS, SourceTable
from binlake.decode.ddl.clauses import Action, Clause, UnloggedChange
from binlake.decode.ddl.partitions import ChangePartitions
from binlake.decode.ddl.row_statements import AS_STATEMENT
from binlake.decode.schemas.schemas import SchemaVersion
from binlake.schema.rules.plan import Name, name_at
from binlake.schema.rules.undetermined import UndeterminedEffect

#: The definitions that came under a name, whichever table had it, ascending by ordering value.
VersionsOf = Callable[[SourceTable], Sequence[SchemaVersion]]


@dataclass(frozen=True, slots=True)
class DdlEvent:
    """A statement that was carried out at ordering value ``order``; ``place`` is the same position in readable form.

    ``seconds``: its time since the Unix epoch; None if it is not known. ``recorded``: the statement's digest, if
    ``text`` is not the statement's own text. ``mariadb``: the record shows that the server is a MariaDB. ``previous``:
    the former name of the renamed table, where the record tells it. ``exact``: names without a database are of
    ``database``, for certain. ``by_rows``: nobody has executed it: it says which key the table's rows come with.
    ``strict``: its session is known to refuse values that do not fit. ``charset``: of the text columns that it defines
    and that name none; "" where the record does not tell it.
    """

    order: int
    seconds: int | None
    place: str
    text: str
    database: str
    recorded: str = ""
    mariadb: bool = False
    previous: SourceTable | None = None
    exact: bool = False
    by_rows: bool = False
    strict: bool = False
    charset: str = ""

    @property
    def digest(self) -> str:
        """A hash of the statement: it distinguishes statements of one position, and recognizes a repeated one."""
        return self.recorded or hashlib.blake2b(self.text.encode(), digest_size=8).hexdigest()


@dataclass(frozen=True, slots=True)
class Effect:
    """The effect of a statement on one lake table's source.

    ``old``, ``to``: names of RENAME; of CREATE, ``to`` is the name that a later table of that name was created under.
    ``note``: a remark. ``keys``: the table's key before and after the statement, as the source's definitions give it;
    None where they do not tell. ``empties``: of DROP, whether the rows go whatever the policy is: a tool has made or
    put away the table. ``unfilled``: of ALTER, whether the table has no rows yet: a tool has just
    made it. ``undetermined``: what the statement leaves open.
    """

    event: DdlEvent
    action: Action
    clauses: tuple[Clause, ...] = ()
    old: SourceTable | None = None
    to: SourceTable | None = None
    note: str = ""
    keys: tuple[tuple[str, ...], tuple[str, ...]] | None = None
    empties: bool = False
    unfilled: bool = False
    undetermined: tuple[UndeterminedEffect, ...] = ()

    @property
    def changes_rows(self) -> bool:
        """Whether rows change by it, in the log as a statement."""
        return self.clauses == (AS_STATEMENT,)

    @property
    def lacks_rows(self) -> bool:
        """Whether the table may have rows by it of which no row is in the log."""
        return any(
            (isinstance(clause, UnloggedChange) and clause.brings)
            or (isinstance(clause, ChangePartitions) and clause.brings_rows)
            for clause in self.clauses
        )


@dataclass(frozen=True, slots=True)
class DatedName:
    """A name that a table has at the source since the statement at ``place``; "" for its first name. ``since``: the
    statement's ordering value."""

    name: SourceTable
    place: str = ""
    since: int = field(default=-1, compare=False)


@dataclass(frozen=True, slots=True)
class TableEnd:
    """A statement after which the source has a lake table's source table no more; ``how``: in words."""

    how: str
    place: str
    since: int


@dataclass
class DdlHistory:
    """The effects of all statements, table by table.

    ``effects``: by the table's first name. ``names``: the names of tables that were ever renamed. ``shadows``: the
    tables of schema change tools whose rows are not taken. ``called``: the names of each lake table, in order, if it
    ever had another one than its first. ``gone``: lake tables that no table of the source feeds any more. ``unsure``:
    lake tables whose names the statements do not determine, and why.
    """

    effects: dict[SourceTable, list[Effect]] = field(default_factory=dict)
    names: dict[SourceTable, list[Name]] = field(default_factory=dict)
    shadows: set[SourceTable] = field(default_factory=set)
    called: dict[SourceTable, list[DatedName]] = field(default_factory=dict)
    gone: dict[SourceTable, TableEnd] = field(default_factory=dict)
    unsure: dict[SourceTable, str] = field(default_factory=dict)

    def identity(self, source: SourceTable, order: int) -> Name:
        """The table to which rows of that name and ordering value belong."""
        return name_at(self.names.get(source, ()), order) or Name(-1, source)

    def versions(self, identity: SourceTable, versions_of: VersionsOf) -> list[SchemaVersion]:
        """The definitions of the table of a first name, ascending by ordering value: those of each of its names, from
        the times at which the name was its own. Before and after them the name may be another table's."""
        names = dict.fromkeys([identity, *(one.name for one in self.called.get(identity, ()))])
        mine = (v for name in names for v in versions_of(name) if self.identity(name, v.since).identity == identity)
        return sorted(mine, key=lambda version: version.since)


def place_of(order: int) -> str:
    """An ordering value in readable form: binlog file number and position, or a Kafka offset."""
    file = (order >> POSITION_BITS) & ((1 << FILE_BITS) - 1)
    position = order & ((1 << POSITION_BITS) - 1)
    return f"{file:06d}:{position}" if file else f"offset {position}"
