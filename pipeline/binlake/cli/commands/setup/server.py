"""What a MySQL or MariaDB server must have for its changes to be streamed: asked, and how to mend what it lacks.

The variables and rights are those that Debezium's connectors for MySQL and MariaDB ask for, and those that
``binlake verify`` needs (docs/verify.md). Managed services set variables in groups of their own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from binlake.source.database.connection import SourceConnection

_DAY_S = 86_400


class Provider(StrEnum):
    """Who runs the server, which decides how a variable is set."""

    SELF = "self"
    RDS = "rds"
    AURORA = "aurora"
    CLOUD_SQL = "cloudsql"


@dataclass(frozen=True)
class ServerFinding:
    """One thing that was asked.

    Args:
        name: of the variable or right.
        value: what the server has.
        ok: whether that suffices.
        why: what happens otherwise.
        mend: what to do; "" if it suffices.
    """

    name: str
    value: str
    ok: bool
    why: str
    mend: str = ""


@dataclass(frozen=True)
class SourceColumns:
    """A table of the server.

    Args:
        database, table: its name.
        keyed: whether it has a primary key.
        bytes: its size, as the server estimates it.
    """

    database: str
    table: str
    keyed: bool
    bytes: int


@dataclass(frozen=True)
class _Variable:
    name: str
    suffices: Callable[[str], bool]
    wanted: str
    why: str


_VARIABLES = (
    _Variable("log_bin", lambda v: v in ("ON", "1"), "ON", "without a binlog there is nothing to stream"),
    _Variable("binlog_format", lambda v: v.upper() == "ROW", "ROW", "statements do not say which rows they change"),
    _Variable(
        "binlog_row_image",
        lambda v: v.upper() == "FULL",
        "FULL",
        "keyless tables, rows that move between partitions and binlake revert need whole rows",
    ),
    _Variable(
        "binlog_row_metadata",
        lambda v: v.upper() == "FULL",
        "FULL",
        "with it a connector that is late reads old events by the columns' own signs, character sets and names",
    ),
    _Variable("server_id", lambda v: v.isdigit() and int(v) > 0, "1", "replication asks for a number above 0"),
    _Variable(
        "binlog_expire_logs_seconds",
        lambda v: int(float(v)) == 0 or int(float(v)) >= _DAY_S,
        str(3 * _DAY_S),
        "a connector that stands still for longer loses changes",
    ),
    _Variable("gtid_mode", lambda v: v.upper() == "ON", "ON", "after a failover the connector finds its place by GTID"),
    _Variable(
        "binlog_legacy_event_pos",
        lambda v: v.upper() in ("ON", "1"),
        "ON",
        "with it, equal rows of a keyless table in one transaction have positions of their own",
    ),
)
#: Right -> the reason. The connector's user needs them on *.*.
_RIGHTS: Mapping[str, str] = {
    "SELECT": "the snapshot, binlake load and binlake verify read rows",
    "REPLICATION SLAVE": "the connector reads the binlog",
    "REPLICATION CLIENT": "the connector, binlake load and binlake verify ask for the binlog's position",
    "RELOAD": "the snapshot and binlake load lock tables for moments",
}
#: MariaDB 10.5 and later name REPLICATION CLIENT anew.
_OTHER_NAMES: Mapping[str, tuple[str, ...]] = {
    "REPLICATION CLIENT": ("BINLOG MONITOR", "SLAVE MONITOR"),
    "REPLICATION SLAVE": ("REPLICATION SLAVE ADMIN",),
}
_OWN = "'mysql', 'information_schema', 'performance_schema', 'sys'"


def findings(connection: SourceConnection, provider: Provider) -> Iterator[ServerFinding]:
    """Ask for each variable and right. Raises TransientError, ConfigError."""
    names = ", ".join(f"'{variable.name}'" for variable in _VARIABLES)
    values = {
        str(name).lower(): str(value)
        for name, value in connection.rows(f"SHOW VARIABLES WHERE Variable_name IN ({names})")
    }
    for variable in _VARIABLES:
        if (value := values.get(variable.name)) is not None:  # each server has those of its own
            ok = variable.suffices(value)
            mend = "" if ok else _set(variable, provider)
            yield ServerFinding(variable.name, value, ok, variable.why, mend)
    yield from _time_zone(connection)
    yield from _rights(connection)


def _set(variable: _Variable, provider: Provider) -> str:
    value = variable.wanted
    if variable.name == "log_bin":
        return {
            Provider.SELF: "start the server with --log-bin",
            Provider.RDS: "turn automated backups on: RDS writes a binlog while they are",
            Provider.AURORA: "set binlog_format=ROW in the cluster's parameter group, then restart the writer",
            Provider.CLOUD_SQL: "gcloud sql instances patch INSTANCE --enable-bin-log",
        }[provider]
    if variable.name == "binlog_expire_logs_seconds" and provider in (Provider.RDS, Provider.AURORA):
        return "CALL mysql.rds_set_configuration('binlog retention hours', 72)"
    return {
        Provider.SELF: f"SET GLOBAL {variable.name} = {value}, and the same in the server's option file",
        Provider.RDS: f"set {variable.name}={value} in the instance's parameter group",
        Provider.AURORA: f"set {variable.name}={value} in the cluster's parameter group",
        Provider.CLOUD_SQL: f"gcloud sql instances patch INSTANCE --database-flags={variable.name}={value}",
    }[provider]


def _time_zone(connection: SourceConnection) -> Iterator[ServerFinding]:
    row = connection.named("SELECT @@global.time_zone AS zone, @@system_time_zone AS host_zone")
    zone = row.get("zone") or ""
    shown = f"{zone} ({row.get('host_zone')})" if zone == "SYSTEM" else zone
    why = "TIMESTAMP is kept in UTC whatever it is; Canal and Maxwell write it in this zone: see source.time_zone"
    yield ServerFinding("time_zone", shown, True, why)


def _rights(connection: SourceConnection) -> Iterator[ServerFinding]:
    text = "\n".join(str(row[0]) for row in connection.rows("SHOW GRANTS"))
    user = str(connection.rows("SELECT CURRENT_USER()")[0][0])
    granted = {
        right.strip().upper()
        for rights in re.findall(r"GRANT (.+?) ON \*\.\* TO", text, re.IGNORECASE)
        for right in rights.split(",")
    }
    anywhere = {right.strip().upper() for rights in re.findall(r"GRANT (.+?) ON ", text) for right in rights.split(",")}
    account = "@".join(f"'{part}'" for part in user.split("@", 1))
    for right, why in _RIGHTS.items():
        names = {right, *_OTHER_NAMES.get(right, ()), "ALL PRIVILEGES"}
        ok = bool(names & (anywhere if right == "SELECT" else granted))
        yield ServerFinding(
            f"right {right}", "yes" if ok else "no", ok, why, "" if ok else f"GRANT {right} ON *.* TO {account}"
        )


def tables(connection: SourceConnection, database: str | None) -> list[SourceColumns]:
    """The tables of one database, or of all but the server's own. Raises TransientError, ConfigError.

    Keys are asked of the columns: a user who may only read does not see constraints (MariaDB 11.4, measured).
    """
    where = f"t.table_schema = {connection.literal(database)}" if database else f"t.table_schema NOT IN ({_OWN})"
    question = (
        "SELECT t.table_schema, t.table_name, COALESCE(t.data_length, 0), "
        "EXISTS(SELECT 1 FROM information_schema.columns c WHERE c.table_schema = t.table_schema "
        "AND c.table_name = t.table_name AND c.column_key = 'PRI') "
        "FROM information_schema.tables t WHERE t.table_type = 'BASE TABLE' AND "
    )
    rows = connection.rows(f"{question}{where} ORDER BY 1, 2")
    return [SourceColumns(str(d), str(t), str(keyed) == "1", int(str(size))) for d, t, size, keyed in rows]
