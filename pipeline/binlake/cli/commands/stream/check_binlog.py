"""What ``binlake check`` says of the server whose binlog is streamed: by binlake itself, the server's settings, the
user's rights, and whether it still has what the stream would read next; by a connector, how it writes its binlog."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from binlake.cli.commands.setup.server import Provider, ServerFinding, findings
from binlake.cli.commands.stream.check_result import Check, CheckOutcome, check_of_finding, failed_check
from binlake.cli.text import number, size
from binlake.position.ledger import Ledger
from binlake.settings import MysqlSettings, Settings
from binlake.source.binlog.places import PARTITION, place_of
from binlake.source.binlog.reading import BinlogSource
from binlake.source.database.connection import SourceConnection, TextRow, connect
from binlake.stream.binlog.beginning import begin
from binlake.stream.recovery import loaded_position, recover
from binlake.tables.lake import Lake
from hudilake.errors import ConfigError, LakeError
from hudilake.storage import open_storage

#: What reading needs. Debezium, or only ``binlake verify``, needs the rest of the findings.
_NEEDED = frozenset(
    {
        "log_bin",
        "binlog_format",
        "binlog_row_image",
        "binlog_row_metadata",
        "server_id",
        "right REPLICATION SLAVE",
        "right REPLICATION CLIENT",
    }
)
#: What a connector needs, too, and does not look at again once it runs.
_FOR_CONNECTORS = frozenset({"log_bin", "binlog_format", "binlog_row_image"})
_OF_BINLOGS = frozenset({"auto", "debezium", "debezium_avro", "canal", "maxwell"})
_NO_RIGHT, _NO_STATEMENT = 1227, 1064
_OFF = ("", "OFF", "0")
#: Variables that make events which are refused -> their value must be off.
_UNREADABLE = {
    "binlog_transaction_compression": "transactions that the server compresses are refused",
    "binlog_row_value_options": "updates of parts of JSON documents are refused",
}


def binlog_steps(settings: Settings, mysql: MysqlSettings) -> Iterator[tuple[str, Callable[[], str]]]:
    """Name and function of each check."""
    yield "server", partial(_server, settings)
    yield "server id", partial(_server_id, settings, mysql)
    yield "position", partial(_position, settings, mysql)


def _server(settings: Settings) -> str:
    """Raises ConfigError where the server's settings or the user's rights do not suffice."""
    with connect(settings.source.database.model_copy(update={"replica": None})) as connection:
        lacking = [one for one in findings(connection, Provider.SELF) if one.name in _NEEDED and not one.ok]
        lacking += list(_unreadable(connection))
        version = str(connection.rows("SELECT VERSION()")[0][0])
    if lacking:
        raise ConfigError(
            "; ".join(f"{one.name} is {one.value}: {one.why}" for one in lacking),
            do_next="; ".join(one.mend for one in lacking),
            server=connection.place,
        )
    return f"{version} at {connection.place} writes whole rows, and says what their columns are"


def binlog_behind_topics(settings: Settings) -> Iterator[Check]:
    """How the server writes the binlog that a connector brings to Kafka; nothing for events of another kind of
    source. What cannot be asked is not compared."""
    name, database = "source", settings.source.database
    if settings.source.format not in _OF_BINLOGS or settings.source.plain:
        return
    if database.host is None or database.user is None:
        why = "the settings do not name the server (source.database)"
        yield Check(name, CheckOutcome.OK, f"binlog_format is not compared: {why}")
        return
    try:
        with connect(database.model_copy(update={"replica": None})) as connection:
            asked = [one for one in findings(connection, Provider.SELF) if one.name in _FOR_CONNECTORS]
            place = connection.place
    except LakeError as error:  # the stream itself does not need the server
        yield check_of_finding(name, f"binlog_format is not compared: {error}", doubtful=True)
        return
    lacking = [one for one in asked if not one.ok]
    words = "; ".join(f"{one.name} is {one.value}: {one.why}" for one in lacking)
    if any(one.name != "binlog_row_image" for one in lacking):
        yield failed_check(name, ConfigError(words, do_next="; ".join(one.mend for one in lacking), server=place))
    else:
        seen = words or ", ".join(f"{one.name} is {one.value}" for one in asked)
        yield check_of_finding(name, f"{seen} at {place}", doubtful=bool(lacking))


def _unreadable(connection: SourceConnection) -> Iterator[ServerFinding]:
    names = ", ".join(f"'{name}'" for name in _UNREADABLE)
    for name, value in connection.rows(f"SHOW GLOBAL VARIABLES WHERE Variable_name IN ({names})"):
        if str(value).upper() not in _OFF:
            why = _UNREADABLE[str(name).lower()]
            yield ServerFinding(str(name), str(value), False, why, f"SET GLOBAL {name} = DEFAULT")


def _server_id(settings: Settings, mysql: MysqlSettings) -> str:
    """Whether no registered replica has the number. Readers that do not register, as binlake itself, are not listed."""
    mine = mysql.replica_id(settings.name)
    with connect(settings.source.database.model_copy(update={"replica": None})) as connection:
        own = int(str(connection.rows("SELECT @@server_id")[0][0]))
        listed = _replicas(connection)
    if mine in {own} | {int(str(row[0])) for row in listed or ()}:
        raise ConfigError(
            f"server id {mine} is the server's own, or that of a replica",
            do_next="give source.mysql.server_id a number that no other replica has",
        )
    if listed is None:
        return f"{mine}; whether a replica has it is not known: the user may not list them (REPLICATION MASTER ADMIN)"
    return f"{mine} is no replica's that the server lists"


def _replicas(connection: SourceConnection) -> list[TextRow] | None:
    """The replicas that have registered themselves, by the statement's name on this server; None where the user may not
    see them: reading the binlog of MariaDB does not need that right."""
    for statement in ("SHOW REPLICAS", "SHOW SLAVE HOSTS"):
        try:
            return connection.rows(statement)
        except ConfigError as error:
            if error.where.get("error") not in (_NO_RIGHT, _NO_STATEMENT):
                raise
    return None


def _position(settings: Settings, mysql: MysqlSettings) -> str:
    """Raises BadInputError where the server no longer has what the stream would read, or is another one."""
    saved = Ledger.load(open_storage(settings.state_uri, settings.state_options()), settings.name)
    root = open_storage(settings.lake.uri, settings.lake.storage_options())
    lake = Lake(root)
    ledger = saved or recover(settings, root, lake)
    source = BinlogSource.open(settings)
    is_new = not ledger.positions.knows(source.topic, PARTITION)
    offset = begin(source, ledger, mysql.start, lambda: loaded_position(settings, root, lake))
    if is_new:
        return f"a new stream; it begins at {place_of(offset)} of {source.topic}"
    left = size(source.server.left_after(offset))
    return f"after batch {number(ledger.batch)} at {place_of(offset)} of {source.topic}; {left} are left"
