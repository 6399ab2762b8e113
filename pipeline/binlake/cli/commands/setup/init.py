"""``binlake init``: look at Kafka, and at the database if it is given, and write a settings file that says why."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from pathlib import Path
from typing import Annotated

import typer
from pydantic import SecretStr

from binlake.cli.commands.setup.proposal import CONNECTOR_REASONS, Proposal, connector_text, settings_text
from binlake.cli.commands.setup.server import Provider, SourceColumns, findings
from binlake.cli.commands.setup.server import tables as tables_of
from binlake.cli.commands.setup.topics import TopicGroup, choose, survey
from binlake.cli.commands.stream.check_result import exit_code, print_checks, write_checks
from binlake.cli.text import number, say, say_json, size, terminal
from binlake.settings import DatabaseSettings, KafkaSettings, Settings
from binlake.source.database.connection import SourceConnection, connect
from hudilake.errors import ConfigError
from hudilake.storage import has_scheme, open_storage
from hudilake.storage.redaction import without_passwords
from hudilake.wording import counted
from lakemetastore.settings.document import format_path
from lakemetastore.settings.problems import SettingsError

#: Where the database's password is; it never stands in a file or on a command line.
PASSWORD = "BINLAKE_MYSQL_PASSWORD"  # noqa: S105 - the name of a variable
_TIMEOUT_S = 10.0
#: Kafka's letters for topics.
_PREFIX = re.compile(r"[A-Za-z0-9._-]+")
#: MySQL's number of a wrong user or password.
_DENIED = 1045
_PLACE = re.compile(r"(?:(?P<user>[^@]+)@)?(?P<host>\[[^]]+\]|[^:/@]+)(?::(?P<port>\d+))?(?:/(?P<name>[^/]*))?")


def init(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="The settings file to write.", metavar="CONF")],
    kafka: Annotated[str | None, typer.Option(help="Kafka's bootstrap servers, host:port.")] = None,
    kafka_property: Annotated[
        list[str] | None, typer.Option("--property", help="A client property as name=value; may be repeated.")
    ] = None,
    prefix: Annotated[str | None, typer.Option(help="The topic.prefix of the connector, if there are several.")] = None,
    lake: Annotated[str | None, typer.Option(help="Root of all tables: a directory or a URI.")] = None,
    name: Annotated[str | None, typer.Option(help="The stream's name; the prefix by default.")] = None,
    mysql: Annotated[
        str | None,
        typer.Option(help=f"The database as user@host:port/database; the password is in the variable {PASSWORD}."),
    ] = None,
    provider: Annotated[
        Provider, typer.Option(help="Who runs the database: how its settings are changed.")
    ] = Provider.SELF,
    connector: Annotated[Path | None, typer.Option(help="Write a Debezium connector (JSON) to this file too.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Write over existing files.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON lines: the files, then the checks; words go to standard error.")
    ] = False,
) -> None:
    """Write a first settings file from what Kafka and the database say, and check it.

    With --mysql and without --kafka the stream reads the database's binlog itself. What is not given is asked for at
    a terminal. Nothing but the files is written.
    """
    output = sys.stdout
    if as_json:
        context.with_resource(contextlib.redirect_stdout(sys.stderr))
    if connector is not None and connector.absolute() == file.absolute():
        raise ConfigError("CONF and --connector are the same file", do_next="give two names", path=file)
    if prefix is not None and not _PREFIX.fullmatch(prefix):
        raise ConfigError("no topic has such a prefix", do_next="use letters, digits, dots, _ and -", prefix=prefix)
    for path in filter(None, (file, connector)):
        if path.is_dir():
            raise ConfigError("this is a directory", do_next="name a file in it", path=path)
        if path.exists() and not force:
            raise ConfigError("the file is there already", do_next="give another name, or --force", path=path)
        if not path.absolute().parent.is_dir():
            raise ConfigError("there is no such directory", do_next="make it, or give another", path=path.parent)
    reads_binlog = kafka is None and mysql is not None
    servers = "" if reads_binlog else kafka or _asked("Kafka's bootstrap servers (host:port)", "--kafka")
    properties = dict(_property(text) for text in kafka_property or ())
    uri = _absolute(lake or _asked("Root of all tables (a directory or a URI)", "--lake"))
    first = Proposal(name or "init", uri, servers, properties, prefix=prefix or "x", host="init")
    group = None if reads_binlog else _group(first, prefix, have_database=mysql is not None)
    database, held, mariadb = _database(mysql, provider)
    proposal = Proposal(
        name=name or _name(prefix or (group.prefix if group is not None else ""), file),
        lake=uri,
        servers=servers,
        properties=properties,
        group=group,
        prefix=prefix or (group.prefix if group is not None else _name("", file)),
        database=database.name if database is not None else None,
        host=database.settings.host if database is not None else None,
        port=database.settings.port if database is not None else 3306,
        user=database.settings.user if database is not None else None,
        tables=held,
    )
    text = settings_text(proposal)
    _parsed(text)
    file.write_text(text, encoding="utf-8")
    say(f"wrote {file}")
    if connector is not None:
        connector.write_text(connector_text(proposal, mariadb=mariadb), encoding="utf-8")
        say(f"wrote {connector}: curl -X PUT -H 'Content-Type: application/json' -d @{connector} "
            f"http://CONNECT:8083/connectors/{proposal.name}/config")  # fmt: skip
        for option, why in CONNECTOR_REASONS.items():
            say(f"  {option}: {why}")
    if as_json:
        with contextlib.redirect_stdout(output):
            say_json({"wrote": str(file), "connector": None if connector is None else str(connector)})
    if group is None and not reads_binlog:
        say(f"Kafka has no topics of {proposal.prefix} yet: start the connector, then run binlake check {file}")
        return
    if database is not None and PASSWORD not in os.environ:
        say(f"set {PASSWORD} before you run a command with {file}")
        if reads_binlog:
            return
    from binlake.cli.commands.stream.check import run_checks  # needs what the stream needs

    checks = run_checks(Settings.load(file))
    if as_json:
        with contextlib.redirect_stdout(output):
            write_checks(checks)
    else:
        print_checks(checks, terminal())
    if not (code := exit_code(checks)):
        say(f"next: {f'binlake load {file}, then ' if reads_binlog else ''}binlake run {file}")
    raise typer.Exit(code)


def _asked(question: str, option: str) -> str:
    if not sys.stdin.isatty():
        raise ConfigError(f"{option} is missing", do_next=f"give {option}; at a terminal it is asked for")
    return str(typer.prompt(question))


def _property(text: str) -> tuple[str, str]:
    key, sign, value = text.partition("=")
    if not sign or not key:
        raise ConfigError("this is no property", do_next="write name=value", property=text)
    return key, value


def _parsed(text: str) -> Settings:
    """The settings of a text that is not written yet. Raises ConfigError: it is the options that are wrong."""
    try:
        return Settings.parse(text, environ={PASSWORD: "", **os.environ})
    except SettingsError as error:
        wrong = "; ".join(f"{format_path(one.path)}: {one.message}" for one in error.problems)
        raise ConfigError(f"the options make wrong settings: {wrong}", do_next="correct the options") from None


def _group(first: Proposal, prefix: str | None, *, have_database: bool) -> TopicGroup | None:
    """The topics of the stream; None if there are none yet and the database can tell what they will be."""
    kafka, servers = _parsed(settings_text(first)).kafka, first.servers
    groups = _surveyed(kafka.model_copy(update={"topic_pattern": "[^_].*", "ddl_topics": ()}))
    if not any(group.tables for group in groups if prefix is None or group.prefix == prefix) and have_database:
        return None
    group = choose(groups, prefix)
    known = {None: "no message yet", True: "schemas in the messages", False: "no schemas in the messages"}
    say(
        f"{counted(len(group.tables), 'topic')} of {group.prefix or servers}: {group.format}, {known[group.schemas]}, "
        f"{number(group.bytes_each)} bytes a message; schema change topic: {group.schema_changes or 'none'}"
    )
    if group.empty:
        say(f"  without a record: {', '.join(group.empty[:5])}{' ...' if len(group.empty) > 5 else ''}")
    if group.keyless:
        say(f"  messages without a key: {', '.join(group.keyless[:5])}: their tables have no primary key")
    return group


def _surveyed(section: KafkaSettings) -> list[TopicGroup]:
    try:
        return survey(section, _TIMEOUT_S)
    except ConfigError as error:
        if "no topic matches" in error.what:
            return []
        raise


class _Database:
    """The database of ``--mysql``: how to reach it, and its name; None for all."""

    def __init__(self, text: str) -> None:
        parts = _PLACE.fullmatch(text)
        if parts is None or int(parts["port"] or 1) not in range(1, 1 << 16) or "/" in (parts["user"] or ""):
            shown = without_passwords(text)
            raise ConfigError("this names no database", do_next="write user@host:port/database", mysql=shown)
        if ":" in (parts["user"] or ""):
            raise ConfigError(
                "a password does not belong on a command line, which others can read",
                do_next=f"set the variable {PASSWORD}, and write user@host:port/database",
            )
        password = os.environ.get(PASSWORD)
        self.name = parts["name"] or None
        self.settings = DatabaseSettings(
            host=parts["host"].strip("[]"),
            port=int(parts["port"] or 3306),
            user=parts["user"] or "root",
            password=SecretStr(password) if password is not None else None,
            timeout_seconds=_TIMEOUT_S,
        )


def _database(text: str | None, provider: Provider) -> tuple[_Database | None, tuple[SourceColumns, ...], bool]:
    """The database, its tables, and whether it is a MariaDB. What it lacks is printed."""
    if text is None:
        return None, (), False
    database = _Database(text)
    with _connected(database) as connection:
        version = str(connection.rows("SELECT VERSION()")[0][0])
        _print_server(connection, version, provider)
        if database.name is not None:
            _check_there(connection, database.name)
        held = tuple(tables_of(connection, database.name))
    keyless = sum(not table.keyed for table in held)
    say(f"{counted(len(held), 'table')}, {size(sum(table.bytes for table in held))}; {keyless} without a primary key")
    return database, held, "mariadb" in version.lower()


def _check_there(connection: SourceConnection, database: str) -> None:
    """Raise ConfigError unless the user sees a database of this name, letter by letter: topics are named so."""
    names = [str(name) for (name,) in connection.rows("SELECT schema_name FROM information_schema.schemata")]
    if database not in names:
        from binlake.tables.catalog import did_you_mean  # opens tables, which nothing else here does

        do_next = did_you_mean(database, names) or "give the user the right SELECT on it"
        raise ConfigError("the user of --mysql sees no such database", do_next=do_next, database=database)


def _connected(database: _Database) -> SourceConnection:
    """A connection to the database. Errors as ``connect``; that of a wrong password says which variable has it."""
    try:
        return connect(database.settings)
    except ConfigError as error:
        if error.where.get("error") != _DENIED:
            raise
        do_next = f"correct the user of --mysql, or the password in the variable {PASSWORD}"
        if PASSWORD not in os.environ:
            do_next = f"put the user's password into the variable {PASSWORD}"
        raise ConfigError(error.what, do_next=do_next, **error.where) from None


def _print_server(connection: SourceConnection, version: str, provider: Provider) -> None:
    say(f"server {version} at {connection.place}")
    for one in findings(connection, provider):
        say(f"  {'ok  ' if one.ok else 'MEND'} {one.name}: {one.value}{'' if one.ok else f'; {one.why}'}")
        if one.mend:
            say(f"       {one.mend}")


def _name(prefix: str, file: Path) -> str:
    """A stream's name: letters, digits, _ and -."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", prefix or file.stem) or "stream"


def _absolute(lake: str) -> str:
    """A lake's URI that is the same from every directory. Raises ConfigError if no storage has its scheme."""
    if has_scheme(lake):
        open_storage(lake)
        return lake
    return Path(lake).expanduser().absolute().as_uri()
