"""The schema for reading a table's rows: from the message, from MySQL's types, or from both."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from binlake.decode.changes import META_NAMES, Column, SourceTable, TableSchema, ZeroDates
from binlake.decode.events import NO_PLACE
from binlake.decode.options import Form, JsonForm
from binlake.decode.order import OUT_OF_RANGE
from binlake.decode.quarantine import Fault, Reason
from binlake.decode.schemas.schemas import SchemaVersion
from binlake.decode.types.columns import ConnectField, column_from_connect
from binlake.decode.types.text_columns import column_of
from binlake.decode.types.zero_dates import with_policy
from hudilake.errors import UnsupportedError

_I64 = npt.NDArray[np.int64]
_UNKNOWN = -1

HOW_TO_DECLARE = (
    "declare its columns in the settings, or read the connector's schema-change topic (include.schema.changes), "
    "or send schemas (schemas.enable); with Maxwell, send its DDL (output_ddl)"
)


@dataclass(frozen=True, slots=True)
class SchemaRequest:
    """A request for a schema. ``declared_key`` and ``message_key`` (the Kafka key's names) may be None. ``embedded`` is
    None where no schema comes with the rows, and ``flat_prefix`` for envelopes. ``zero_dates``: as in DecodeOptions.
    """

    source: SourceTable
    embedded: ConnectField | None
    declared_key: tuple[str, ...] | None
    message_key: tuple[str, ...] | None
    flat_prefix: str | None
    form: Form
    zero_dates: ZeroDates


def versions_in_force(versions: tuple[SchemaVersion, ...], positions: _I64, *, as_hints: bool = False) -> _I64:
    """The index of the version in force at each position, -1 where it is unknown.

    A record without a position gets the latest version, and a record before all versions gets the earliest. Both hold
    only when all known versions give every column the same type, or when the version is a mere hint.
    """
    since = np.array([version.since for version in versions], dtype=np.int64)
    indices = np.searchsorted(since, positions, side="right") - 1
    placeless = (positions == NO_PLACE) | (positions == OUT_OF_RANGE)
    too_early = (indices < 0) & ~placeless
    if placeless.any() or too_early.any():
        alive = [i for i, version in enumerate(versions) if not version.dropped]
        sure = bool(alive) and (as_hints or _agree([versions[i] for i in alive]))
        indices = np.where(placeless, alive[-1] if sure else _UNKNOWN, indices)
        indices = np.where(too_early, alive[0] if sure else _UNKNOWN, indices)
    return indices


def _agree(versions: list[SchemaVersion]) -> bool:
    known: dict[str, object] = {}
    return all(known.setdefault(name, kind) == kind for v in versions for name, kind in v.columns)


def schemas_in_force(
    asked: SchemaRequest, versions: tuple[SchemaVersion, ...], positions: _I64
) -> Iterator[tuple[TableSchema | Fault, _I64]]:
    """Schemas, each with the indices (into ``positions``) of its rows."""
    if not versions:
        yield _schema(asked, None), np.arange(len(positions))
        return
    version_indices = versions_in_force(versions, positions, as_hints=asked.embedded is not None)
    for index in np.unique(version_indices).tolist():
        version = None if index == _UNKNOWN else versions[index]
        yield _schema(asked, version), np.flatnonzero(version_indices == index)


@lru_cache(maxsize=1024)
def _schema(asked: SchemaRequest, version: SchemaVersion | None) -> TableSchema | Fault:
    if version is not None and version.dropped:
        version = None
    try:
        if asked.embedded is not None:
            columns = _embedded_columns(asked, asked.embedded, version)
        elif version is None:
            return Fault(Reason.NO_SCHEMA, f"no schema of {asked.source} is known at this position: {HOW_TO_DECLARE}")
        elif version.unsupported:
            named = ", ".join(version.unsupported)
            return Fault(Reason.UNSUPPORTED_TYPE, f"types of columns {named} are not known: {HOW_TO_DECLARE}")
        else:
            columns = tuple(column_of(name, kind, asked.form) for name, kind in version.columns)
    except UnsupportedError as error:
        return Fault(Reason.UNSUPPORTED_TYPE, str(error))
    names = [column.name for column in columns]
    if taken := set(names) & set(META_NAMES):
        return Fault(Reason.RESERVED_COLUMN, f"columns {', '.join(sorted(taken))} are names binlake itself uses")
    key = _key(asked, version, names)
    return TableSchema(
        asked.source, tuple(with_policy(c, asked.zero_dates, in_key=c.name in key) for c in columns), key
    )


def _embedded_columns(
    asked: SchemaRequest, embedded: ConnectField, version: SchemaVersion | None
) -> tuple[Column, ...]:
    hints = dict(version.columns) if version is not None else {}
    fields = embedded.row_fields(asked.flat_prefix)
    form = asked.form if isinstance(asked.form, JsonForm) else JsonForm()
    return tuple(column_from_connect(f, hints.get(f.field), form) for f in fields)


def _key(asked: SchemaRequest, version: SchemaVersion | None, names: list[str]) -> tuple[str, ...]:
    """The declared key, else the Kafka key's names if all of them are columns, else the primary key."""
    if asked.declared_key is not None:
        return asked.declared_key
    if asked.message_key and set(asked.message_key) <= set(names):
        return asked.message_key
    return version.key if version is not None else ()
