"""Partition definitions of CREATE TABLE and ALTER TABLE, and the statements that change or empty partitions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from binlake.decode.ddl.tokens import AbsurdStatementError, Reader, Token, split_at_commas, text_of, tokens_of

MAXVALUE = "MAXVALUE"
#: Of a table, subpartitions included, in MySQL and MariaDB.
MOST_PARTITIONS = 8192


class Method(StrEnum):
    """How a row's partition is found."""

    RANGE = "RANGE"
    LIST = "LIST"
    HASH = "HASH"
    KEY = "KEY"
    OTHER = "OTHER"


@dataclass(frozen=True, slots=True)
class PartitionDefinition:
    """One partition. ``values``: texts of the bounds of RANGE (one a column) or of the values of LIST. ``subs``: names
    of its subpartitions."""

    name: str
    values: tuple[str, ...] = ()
    subs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Partitioning:
    """The partitions of a table, in order.

    ``expression``: text; empty where ``columns`` are named (RANGE COLUMNS, LIST COLUMNS, KEY). ``sub``: how partitions
    are divided, with its number of subpartitions as its parts.
    """

    method: Method
    linear: bool = False
    expression: str = ""
    columns: tuple[str, ...] = ()
    parts: tuple[PartitionDefinition, ...] = ()
    sub: Partitioning | None = None

    def named(self, name: str) -> Iterator[tuple[int, int | None]]:
        """Places (partition, subpartition or None for all of them) of a name, without regard to case."""
        for index, part in enumerate(self.parts):
            if part.name.lower() == name.lower():
                yield index, None
            yield from ((index, n) for n, sub in enumerate(part.subs) if sub.lower() == name.lower())

    def __str__(self) -> str:
        return partitioning_text(self)


class PartitionAction(StrEnum):
    """What a statement does with partitions."""

    DEFINE = "define"
    REMOVE = "remove"
    ADD = "add"
    DROP = "drop"
    TRUNCATE = "truncate"
    COALESCE = "coalesce"
    REORGANIZE = "reorganize"
    EXCHANGE = "exchange"
    IMPORT = "import"


@dataclass(frozen=True, slots=True)
class ChangePartitions:
    """A partition clause. ``names``: of partitions; ``every``: ALL. ``parts``: new ones; ``count``: a number of them.
    ``defined``: the whole definition."""

    action: PartitionAction
    names: tuple[str, ...] = ()
    every: bool = False
    parts: tuple[PartitionDefinition, ...] = ()
    count: int = 0
    defined: Partitioning | None = None

    @property
    def brings_rows(self) -> bool:
        """Whether rows come from another table, or from a file."""
        return self.action in (PartitionAction.EXCHANGE, PartitionAction.IMPORT)


def partition_clause(tokens: Sequence[Token]) -> ChangePartitions | None:
    """The partition clause that an ALTER TABLE consists of or ends with, or a CREATE TABLE ends with; None if it has
    none."""
    reader = Reader(tokens)
    for action in ("ADD", "DROP", "TRUNCATE", "COALESCE", "REORGANIZE", "EXCHANGE", "CONVERT", "IMPORT"):
        if reader.take(action, "PARTITION"):
            return _changed(action, reader)
    if reader.take("CONVERT", "TABLE"):
        return ChangePartitions(PartitionAction.EXCHANGE)
    depth = 0
    for index, token in enumerate(tokens):
        depth += token.is_sign("(") - token.is_sign(")")
        if (
            depth == 0
            and token.is_word("REMOVE")
            and tokens[index + 1 : index + 2]
            and tokens[index + 1].is_word("PARTITIONING")
        ):
            return ChangePartitions(PartitionAction.REMOVE)
        if (
            depth == 0
            and token.is_word("PARTITION")
            and tokens[index + 1 : index + 2]
            and tokens[index + 1].is_word("BY")
        ):
            return ChangePartitions(PartitionAction.DEFINE, defined=_defined(Reader(tokens[index + 2 :])))
    return None


def parse_partitioning(text: str) -> Partitioning:
    """The reverse of ``str(partitioning)``."""
    clause = partition_clause(tokens_of(text))
    if clause is None or clause.defined is None:
        raise ValueError(f"not a partition definition: {text!r}")
    return clause.defined


def _changed(action: str, reader: Reader) -> ChangePartitions:
    reader.take("IF", "NOT", "EXISTS") or reader.take("IF", "EXISTS")
    while reader.take_any("LOCAL", "NO_WRITE_TO_BINLOG"):
        pass
    if action in ("EXCHANGE", "CONVERT"):
        return ChangePartitions(PartitionAction.EXCHANGE, tuple(filter(None, [reader.name()])))
    if action == "COALESCE":
        return ChangePartitions(PartitionAction.COALESCE, count=_number(reader))
    if action == "ADD" and reader.take_any("PARTITIONS"):
        return ChangePartitions(PartitionAction.ADD, count=_number(reader))
    if action == "ADD":
        return ChangePartitions(PartitionAction.ADD, parts=_parts(reader.bracketed() or []))
    if action == "REORGANIZE":
        names = _names(reader)
        parts = _parts(reader.bracketed() or []) if reader.take("INTO") else ()
        return ChangePartitions(PartitionAction.REORGANIZE, names, parts=parts)
    if reader.take("ALL"):
        return ChangePartitions(PartitionAction(action.lower()), every=True)
    return ChangePartitions(PartitionAction(action.lower()), _names(reader))


def _names(reader: Reader) -> tuple[str, ...]:
    names: list[str] = []
    while reader.left and not reader.next.is_word("INTO"):
        name = reader.name()
        if name is None and not reader.take_sign(","):
            break
        names += [name] if name is not None else []
    return tuple(names)


def _number(reader: Reader) -> int:
    """A number of partitions. Raises AbsurdStatementError if no server has so many."""
    if not reader.left or reader.next.kind != "number":
        return 0
    text = reader.next.text
    reader.skip()
    number = float(text)  # infinite for a text of many digits
    if not 0 <= number <= MOST_PARTITIONS:
        raise AbsurdStatementError(f"{text} partitions")
    return int(number)


def _defined(reader: Reader) -> Partitioning:
    plain = _method(reader)
    count = _number(reader) if reader.take("PARTITIONS") else 0
    sub = None
    if reader.take("SUBPARTITION", "BY"):
        sub = _method(reader)
        subs = _number(reader) if reader.take("SUBPARTITIONS") else 0
        sub = replace(sub, parts=tuple(PartitionDefinition(str(n)) for n in range(subs)))
    inside = reader.bracketed()
    parts = _parts(inside) if inside is not None else tuple(PartitionDefinition(f"p{n}") for n in range(count or 1))
    if sub is not None:
        most = max([len(sub.parts), *(len(part.subs) for part in parts)])
        if most * len(parts) > MOST_PARTITIONS:
            raise AbsurdStatementError(f"{most * len(parts)} partitions")
        sub = replace(sub, parts=tuple(PartitionDefinition(str(n)) for n in range(most)))
        parts = tuple(_divided(part, most) for part in parts)
    return replace(plain, parts=parts, sub=sub)


def _divided(part: PartitionDefinition, count: int) -> PartitionDefinition:
    return part if part.subs else replace(part, subs=tuple(f"{part.name}sp{n}" for n in range(count)))


def _method(reader: Reader) -> Partitioning:
    linear = reader.take("LINEAR")
    name = next((m for m in ("RANGE", "LIST", "HASH", "KEY") if reader.take(m)), None)
    if name is None:
        return Partitioning(Method.OTHER)
    if reader.take("ALGORITHM"):
        reader.take_sign("=")
        reader.skip()
    columns = reader.take("COLUMNS") or name == "KEY"
    inside = reader.bracketed() or []
    if columns:
        named = tuple(part[0].value for part in split_at_commas(inside) if part)
        return Partitioning(Method(name), linear, columns=named)
    return Partitioning(Method(name), linear, expression=text_of(inside))


def _parts(tokens: Sequence[Token]) -> tuple[PartitionDefinition, ...]:
    return tuple(_part(Reader(one)) for one in split_at_commas(tokens) if one)


def _part(reader: Reader) -> PartitionDefinition:
    reader.take("PARTITION")
    name = reader.name() or ""
    values: tuple[str, ...] = ()
    if reader.take("VALUES", "LESS", "THAN"):
        values = _texts(reader.bracketed()) or (MAXVALUE,)
    elif reader.take("VALUES", "IN"):
        values = _texts(reader.bracketed())
    elif reader.take("DEFAULT"):
        values = ("DEFAULT",)
    while reader.left and not reader.next.is_sign("("):
        reader.skip()
    inside = [Reader(one) for one in split_at_commas(reader.bracketed() or []) if one]
    return PartitionDefinition(name, values, tuple(sub.name() or "" for sub in inside if sub.take("SUBPARTITION")))


def _texts(tokens: Sequence[Token] | None) -> tuple[str, ...]:
    return tuple(text_of(one) for one in split_at_commas(tokens or []) if one)


def changed_partitioning(known: Partitioning | None, clause: ChangePartitions) -> Partitioning | None:
    """The definition after a clause. ``known``: the one before it; None for a table without partitions."""
    action = clause.action
    if action is PartitionAction.DEFINE:
        return clause.defined
    if action is PartitionAction.REMOVE or known is None:
        return None
    if action is PartitionAction.ADD:
        count = len(known.parts)
        more = clause.parts or tuple(PartitionDefinition(f"p{count + n}") for n in range(clause.count))
        return _with_parts(known, (*known.parts, *more))
    if action is PartitionAction.COALESCE:
        return _with_parts(known, known.parts[: len(known.parts) - clause.count])
    gone = {name.lower() for name in clause.names}
    if action is PartitionAction.DROP:
        return _with_parts(known, tuple(part for part in known.parts if part.name.lower() not in gone))
    if action is PartitionAction.REORGANIZE and clause.parts:
        position = next((n for n, part in enumerate(known.parts) if part.name.lower() in gone), len(known.parts))
        kept = [part for part in known.parts if part.name.lower() not in gone]
        return _with_parts(known, (*kept[:position], *clause.parts, *kept[position:]))
    return known


def _with_parts(known: Partitioning, parts: tuple[PartitionDefinition, ...]) -> Partitioning:
    if len(parts) * (len(known.sub.parts) if known.sub is not None else 1) > MOST_PARTITIONS:
        return known  # no server carries the statement out
    divided = tuple(_divided(part, len(known.sub.parts)) for part in parts) if known.sub is not None else parts
    return replace(known, parts=divided)


def partitioning_text(one: Partitioning) -> str:
    """The definition as a clause of CREATE TABLE."""
    text = f"PARTITION BY {_method_text(one)}"
    if one.sub is not None:
        text += f" SUBPARTITION BY {_method_text(one.sub)} SUBPARTITIONS {len(one.sub.parts)}"
    return f"{text} ({', '.join(_part_text(one, part) for part in one.parts)})"


def _method_text(one: Partitioning) -> str:
    linear = "LINEAR " if one.linear else ""
    if not one.columns and one.method is not Method.KEY:
        return f"{linear}{one.method}({one.expression})"
    names = ", ".join(map(_quoted, one.columns))
    return f"{linear}{one.method}{'' if one.method is Method.KEY else ' COLUMNS'}({names})"


def _part_text(one: Partitioning, part: PartitionDefinition) -> str:
    text = f"PARTITION {_quoted(part.name)}"
    if part.values == ("DEFAULT",):
        text += " DEFAULT"
    elif one.method is Method.RANGE:
        text += f" VALUES LESS THAN ({', '.join(part.values)})"
    elif one.method is Method.LIST:
        text += f" VALUES IN ({', '.join(part.values)})"
    subs = ", ".join(f"SUBPARTITION {_quoted(name)}" for name in part.subs)
    return f"{text} ({subs})" if subs else text


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
