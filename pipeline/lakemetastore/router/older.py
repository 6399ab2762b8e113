"""Calls of Hive 4 for backends that have only the calls before them. Tried with 3.1.3.

Hive 4 puts the arguments of many calls into one struct (``get_partitions_req`` and others). A backend that does not
know such a call gets the older one, if that says the same; otherwise its answer, an unknown method, is the client's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from hive_metastore import ttypes
from thrift.Thrift import TApplicationException, TType

from lakemetastore.hive.generated import arguments_class, declared_exceptions, result_class
from lakemetastore.hive.message import decode, encode, head, reply
from lakemetastore.hive.wire import CALL, ThriftMessage
from lakemetastore.router.errors import RefusedCallError
from lakemetastore.router.replies import body_of, is_exception, refusal

_UNKNOWN_METHOD = b"\x08\x00\x02" + TApplicationException.UNKNOWN_METHOD.to_bytes(4, "big")

Arguments = Callable[[Any], "tuple[str, tuple[Any, ...]] | None"]
"""The struct of a request to the older call and its arguments in order; None if the older call cannot say the same."""


@dataclass(frozen=True, slots=True)
class _Older:
    """``wrap``: from the older call's answer to the newer one's; None if the newer one answers nothing."""

    arguments: Arguments
    wrap: Callable[[Any], Any] | None = None


def _get_database(r: Any) -> tuple[str, tuple[Any, ...]]:  # noqa: ANN401 - a generated struct, as below
    return "get_database", (r.name,)


def _get_tables(r: Any) -> tuple[str, tuple[Any, ...]] | None:  # noqa: ANN401
    said = r.tblNames is not None and r.projectionSpec is None and r.tablesPattern is None
    return ("get_table_objects_by_name", (r.dbName, r.tblNames)) if said else None


def _get_partitions_by_names(r: Any) -> tuple[str, tuple[Any, ...]] | None:  # noqa: ANN401
    return None if r.get_col_stats else ("get_partitions_by_names", (r.db_name, r.tbl_name, r.names))


def _get_partitions_ps(r: Any) -> tuple[str, tuple[Any, ...]]:  # noqa: ANN401
    user = (r.userName, r.groupNames)
    return "get_partitions_ps_with_auth", (r.dbName, r.tblName, r.partVals or [], r.maxParts, *user)


def _create_table(r: Any) -> tuple[str, tuple[Any, ...]] | None:  # noqa: ANN401
    tables = (r.primaryKeys, r.foreignKeys)
    constraints = (*tables, r.uniqueConstraints, r.notNullConstraints, r.defaultConstraints, r.checkConstraints)
    if not any(constraints):
        return "create_table_with_environment_context", (r.table, r.envContext)
    return None if r.envContext else ("create_table_with_constraints", (r.table, *constraints))


def _alter_table(r: Any) -> tuple[str, tuple[Any, ...]]:  # noqa: ANN401
    return "alter_table_with_environment_context", (r.dbName, r.tableName, r.table, r.environmentContext)


def _alter_partitions(r: Any) -> tuple[str, tuple[Any, ...]]:  # noqa: ANN401
    parts = (r.dbName, r.tableName, r.partitions, r.environmentContext)
    return "alter_partitions_with_environment_context", parts


def _rename_partition(r: Any) -> tuple[str, tuple[Any, ...]] | None:  # noqa: ANN401
    return None if r.clonePart else ("rename_partition", (r.dbName, r.tableName, r.partVals, r.newPart))


def _drop_database(r: Any) -> tuple[str, tuple[Any, ...]] | None:  # noqa: ANN401
    said = not (r.softDelete or r.ignoreUnknownDb)
    return ("drop_database", (r.name, r.deleteData, r.cascade)) if said else None


def _fields(method: str) -> Arguments:
    return lambda r: (f"{method}_with_environment_context", (r.dbName, r.tblName, r.envContext))


_OLDER: Final[Mapping[str, _Older]] = MappingProxyType(
    {
        "get_database_req": _Older(_get_database, lambda found: found),
        "get_table_req": _Older(
            lambda r: ("get_table", (r.dbName, r.tblName)), lambda found: ttypes.GetTableResult(table=found)
        ),
        "get_table_objects_by_name_req": _Older(_get_tables, lambda found: ttypes.GetTablesResult(tables=found)),
        "get_partition_req": _Older(
            lambda r: ("get_partition", (r.dbName, r.tblName, r.partVals)),
            lambda found: ttypes.GetPartitionResponse(partition=found),
        ),
        "get_partitions_req": _Older(
            lambda r: ("get_partitions", (r.dbName, r.tblName, r.maxParts)),
            lambda found: ttypes.PartitionsResponse(partitions=found),
        ),
        "get_partition_names_ps_req": _Older(
            lambda r: ("get_partition_names_ps", (r.dbName, r.tblName, r.partValues or [], r.maxParts)),
            lambda found: ttypes.GetPartitionNamesPsResponse(names=found),
        ),
        "get_partitions_ps_with_auth_req": _Older(
            _get_partitions_ps, lambda found: ttypes.GetPartitionsPsWithAuthResponse(partitions=found)
        ),
        "get_partitions_by_names_req": _Older(
            _get_partitions_by_names, lambda found: ttypes.GetPartitionsByNamesResult(partitions=found)
        ),
        "get_fields_req": _Older(_fields("get_fields"), lambda found: ttypes.GetFieldsResponse(fields=found)),
        "get_schema_req": _Older(_fields("get_schema"), lambda found: ttypes.GetSchemaResponse(fields=found)),
        "create_table_req": _Older(_create_table),
        "alter_table_req": _Older(_alter_table, lambda _: ttypes.AlterTableResponse()),
        "alter_partitions_req": _Older(_alter_partitions, lambda _: ttypes.AlterPartitionsResponse()),
        "rename_partition_req": _Older(_rename_partition, lambda _: ttypes.RenamePartitionResponse()),
        "truncate_table_req": _Older(
            lambda r: ("truncate_table", (r.dbName, r.tableName, r.partNames or [])),
            lambda _: ttypes.TruncateTableResponse(),
        ),
        "drop_database_req": _Older(_drop_database),
    }
)


def is_unknown_method(answer: bytes) -> bool:
    """Whether a whole reply says that the backend does not have the method."""
    return is_exception(answer) and _UNKNOWN_METHOD in answer


def older_request(request: ThriftMessage) -> ThriftMessage | None:
    """The older call that says what the request does; None if there is none."""
    older = _OLDER.get(request.name)
    if older is None:
        return None
    [struct] = vars_in_order(decode(request.body, arguments_class(request.name)))
    said = older.arguments(struct)
    if said is None:
        return None
    name, values = said
    kind = arguments_class(name)
    fields = [spec[2] for spec in kind.thrift_spec if spec]  # type: ignore[attr-defined]
    start = head(name, CALL, request.sequence)
    raw = start + encode(kind(**dict(zip(fields, values, strict=True))))
    return ThriftMessage(name, CALL, request.sequence, raw, len(start))


def newer_reply(request: ThriftMessage, asked: ThriftMessage, answer: bytes) -> bytes:
    """The reply to a request out of that to the older call."""
    older = _OLDER[request.name]
    if is_exception(answer):
        return head(request.name, answer[3], request.sequence) + body_of(answer)
    result: Any = decode(body_of(answer), result_class(asked.name))
    for kind, field in declared_exceptions(asked.name).items():
        raised = getattr(result, field)
        if raised is not None:
            return refusal(request, RefusedCallError(raised.message or "", (kind.__name__, "MetaException")))
    newer: Any = result_class(request.name)
    value = newer() if older.wrap is None else newer(success=older.wrap(getattr(result, "success", None)))
    return reply(request.name, request.sequence, encode(value))


def vars_in_order(struct: Any) -> list[Any]:  # noqa: ANN401 - a generated struct
    """The values of a struct's fields in the order of their numbers."""
    return [getattr(struct, spec[2]) for spec in struct.thrift_spec if spec and spec[1] != TType.STOP]
