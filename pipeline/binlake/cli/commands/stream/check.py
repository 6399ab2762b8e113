"""``binlake check``: find what is wrong before the first batch. It changes nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Annotated

import typer
import yaml

from binlake.cli.commands.stream.check_binlog import binlog_behind_topics, binlog_steps
from binlake.cli.commands.stream.check_ddl import policies, statements
from binlake.cli.commands.stream.check_kafka import KafkaProbe
from binlake.cli.commands.stream.check_load import late_topics, unfinished, unread_rows
from binlake.cli.commands.stream.check_machine import (
    lake_is_writable,
    ledger_of,
    machine_steps,
    position_steps,
    state_is_writable,
)
from binlake.cli.commands.stream.check_result import (
    Check,
    CheckOutcome,
    check_of_finding,
    exit_code,
    failed_check,
    print_checks,
    run_check,
    write_checks,
)
from binlake.cli.commands.stream.check_sample import sampled
from binlake.cli.options import LakeConf
from binlake.cli.remarks import bucket_remark, engine_remarks, other_streams, ring_remark
from binlake.cli.text import terminal
from binlake.decode.changes import SourceTable
from binlake.decode.formats.reader import not_carried
from binlake.decode.options import EventFormat
from binlake.decode.schemas.schemas import declared_table
from binlake.rows.merging.reader_limits import reader_limits
from binlake.rows.upsert.fanout import destination, part_of
from binlake.rows.upsert.target import first_bucketing, kind_of, merging_of
from binlake.settings import KafkaSettings, Settings, TableRules, TablesSettings
from binlake.source.positions import compacted_topics, retention_ms
from binlake.source.registry import schema_registry
from binlake.stream.definitions.ddl_topics import with_ddl_topics
from binlake.tables.bucket_sizes import bucket_advice, proposed
from binlake.tables.merging_check import compare_merging
from binlake.tables.unmatched import UnmatchedName, known_columns, unmatched_columns, unmatched_tables
from hudilake.errors import ConfigError, LakeError, UnsupportedError
from hudilake.format.definition.config import TableConfig
from hudilake.format.definition.properties import PROPERTIES_PATH
from hudilake.storage import Storage, StorageError, StorageNotFoundError, open_storage
from hudilake.table.table import HudiTable
from hudilake.wording import counted

#: Every touched bucket costs a file and one to two milliseconds of a commit (measured), so more is seldom meant.
MANY_BUCKETS = 128
_THREADS = 16


def check(
    conf: LakeConf,
    show: Annotated[bool, typer.Option("--show", help="Print all settings in effect, secrets masked.")] = False,
    kafka_timeout_s: Annotated[float, typer.Option(help="How long each answer of Kafka may take, seconds.")] = 10.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON line for every check.")] = False,
) -> None:
    """Check everything that would stop the stream: settings, Kafka, rights, storage, buckets. Changes nothing."""
    settings, console = Settings.load(conf), terminal()
    if show:
        text = yaml.safe_dump(settings.effective(), sort_keys=False, allow_unicode=True)
        console.print(text, markup=False, highlight=False, soft_wrap=True)
    checks = run_checks(settings, kafka_timeout_s=kafka_timeout_s)
    if as_json:
        write_checks(checks)
    else:
        print_checks(checks, console)
    raise typer.Exit(exit_code(checks))


def run_checks(settings: Settings, *, kafka_timeout_s: float = 10.0) -> list[Check]:
    """All checks, in order; one that fails does not keep the others from running, but for those that build on it."""
    checks = [Check("settings", CheckOutcome.OK, f"stream {settings.name}")]
    checks += [run_check("schemas", partial(_check_schemas, settings))] if settings.source.schemas else []
    checks += [run_check("schema registry", partial(_check_registry, settings))] if settings.source.registry.url else []
    checks += [run_check(*step) for step in machine_steps(settings)]
    probe = KafkaProbe(settings.kafka, kafka_timeout_s)
    try:
        mysql = settings.source.mysql
        checks += [run_check(*step) for step in (probe.steps() if mysql is None else binlog_steps(settings, mysql))]
    finally:
        probe.close()
    checks += binlog_behind_topics(settings) if mysql is None else ()
    lake = run_check("lake", partial(lake_is_writable, settings))
    checks += [lake, run_check("state", partial(state_is_writable, settings))]
    if probe.topics and lake.verdict is CheckOutcome.OK:
        try:
            named, settings = settings, with_ddl_topics(settings, new=not ledger_of(settings).positions)
            checks += [_found_topics(settings)] if settings is not named else []
            checks += _short_lived(settings.kafka)
        except LakeError as error:
            checks.append(failed_check("schema changes", error))
    if lake.verdict is CheckOutcome.OK:
        checks += _check_tables(settings, known_tables(settings, probe.topics))
    checks += _check_ddl(settings, known_tables(settings, probe.topics), probe.topics)
    if probe.topics:
        checks += (_nothing(one) for one in unmatched_tables(settings, named_tables(settings, probe.topics)))
    if lake.verdict is CheckOutcome.OK:
        checks += _check_columns(settings)
    checks += _check_compacted(settings.kafka, sorted(probe.topics)) if probe.topics else ()
    checks += _check_carried(settings, probe)
    if probe.topics and lake.verdict is CheckOutcome.OK:
        checks += [run_check(*step) for step in position_steps(settings)]
    checks += _check_samples(settings, probe)
    checks += _check_loads(settings, probe) if lake.verdict is CheckOutcome.OK else ()
    return checks


def _found_topics(settings: Settings) -> Check:
    topics = ", ".join(settings.kafka.ddl_topics)
    return Check("schema changes", CheckOutcome.OK, f"come from {topics}, since kafka.ddl_topics names no topic")


def _short_lived(kafka: KafkaSettings) -> Iterator[Check]:
    """The topics of schema changes whose records Kafka deletes some day: each start of a stream reads all of them."""
    kept = retention_ms(kafka.client_properties(), kafka.ddl_topics)
    for topic, lasting in kept.items():
        detail = (
            f"topic {topic} keeps its records for {lasting / 86_400_000:g} days, and a stream that starts later lacks"
        )
        yield Check("schema changes", CheckOutcome.WARNING, f"{detail} columns' types: set its retention.ms to -1")


def _check_compacted(kafka: KafkaSettings, topics: Sequence[str]) -> Iterator[Check]:
    """The topics from which Kafka takes changes away that a stream may not have read."""
    try:
        compacted = compacted_topics(kafka.client_properties(), topics)
    except LakeError as error:
        yield failed_check("compacted topics", error)
        return
    for topic in compacted:
        detail = (
            f"Kafka keeps the newest change of each row of {topic} alone: a delete, and a move to another partition, "
            "that goes before the stream has read it is lost. Set its cleanup.policy to delete"
        )
        yield Check("compacted topics", CheckOutcome.WARNING, detail)


def _check_schemas(settings: Settings) -> str:
    """The types of ``source.schemas``, read as the decoder reads them."""
    for name, schema in settings.source.schemas.items():
        try:
            declared_table(schema.columns, schema.key)
        except UnsupportedError as error:
            raise ConfigError(error.what, do_next=error.do_next or "correct source.schemas", table=name) from error
    return f"{len(settings.source.schemas)} declared"


def _check_registry(settings: Settings) -> str:
    registry = schema_registry(settings)
    assert registry is not None
    replace(registry, retry_s=0).probe()
    return f"{registry.url} answers"


def _check_ddl(settings: Settings, tables: list[SourceTable], topics: Collection[str]) -> Iterator[Check]:
    """Policies, and what the statements come to that the DDL topics or the tables tell of."""
    yield from (Check(f.name, CheckOutcome.OK, f.detail) for f in policies(settings, tables))
    if not topics:
        return
    try:
        lake = open_storage(settings.lake.uri, settings.lake.storage_options())
        for finding in statements(settings, lake, tables, topics):
            yield check_of_finding(finding.name, finding.detail, doubtful=finding.refused)
    except LakeError as error:
        yield failed_check("ddl", error)


def _check_carried(settings: Settings, probe: KafkaProbe) -> Iterator[Check]:
    """What the format of each table's messages does not carry, by one of them. Other topics than tables' are left."""
    form, ddl = EventFormat(settings.source.format), bool(settings.kafka.ddl_topics)
    for topic in sorted(set(probe.topics) - set(settings.kafka.ddl_topics)):
        tables = known_tables(settings, [topic])
        sample = probe.samples.get(topic)
        value = next(filter(None, sample.values), None) if sample is not None else None
        by_value = settings.source.debezium.tombstone_deletes
        why = (
            not_carried(form, value, ddl_topics=ddl, tombstone_deletes=by_value) if not settings.source.plain else None
        )
        if why is not None and (tables or form is EventFormat.MAXWELL):
            yield Check(f"changes of {tables[0] if len(tables) == 1 else topic}", CheckOutcome.WARNING, why)


def _check_samples(settings: Settings, probe: KafkaProbe) -> Iterator[Check]:
    """What becomes of the first records of each topic."""
    samples = {topic: some for topic, some in probe.samples.items() if topic not in settings.kafka.ddl_topics}
    try:
        for one in sampled(settings, samples):
            yield check_of_finding(one.name, one.detail, doubtful=one.refused, error=one.error)
    except LakeError as error:
        yield failed_check("records", error)


def _check_loads(settings: Settings, probe: KafkaProbe) -> Iterator[Check]:
    """First loads that are not at their end, and those that rows wait for."""
    lake = open_storage(settings.lake.uri, settings.lake.storage_options())
    try:
        for one in (
            *unfinished(settings, lake),
            *(late_topics(settings, lake, probe.samples, probe.deleted) if settings.source.mysql is None else ()),
            *(unread_rows(settings, lake) if settings.source.mysql is not None else ()),
        ):
            yield check_of_finding(one.name, one.detail, doubtful=True, error=one.error)
    except LakeError as error:
        yield failed_check("first load", error)


def known_tables(settings: Settings, topics: Iterable[str]) -> list[SourceTable]:
    """Those of the ``named_tables`` that are taken."""
    return [table for table in named_tables(settings, topics) if settings.selects(table)]


def named_tables(settings: Settings, topics: Iterable[str]) -> list[SourceTable]:
    """The source tables that topic names (``<prefix>.<database>.<table>``) and the settings' schemas speak of."""
    names = [t.split(".")[-2:] for t in topics if t.count(".") >= 2]
    names += [s.split(".", 1) for s in settings.source.schemas if "." in s]
    tables = {SourceTable(database, table) for database, table in names}
    return sorted(tables, key=str)


def _check_tables(settings: Settings, tables: list[SourceTable]) -> Iterator[Check]:
    lake = open_storage(settings.lake.uri, settings.lake.storage_options())
    kept_as = {destination(t, settings.tables) for t in tables}
    rules = {str(t): settings.table_rules(t) for t in sorted(kept_as, key=str)}
    if settings.tables.fans_out:
        yield run_check("routes", partial(_check_routes, settings.tables, tables))
    with ThreadPoolExecutor(_THREADS) as pool:
        checks = list(pool.map(lambda item: _check_table(lake, *item), rules.items()))
    yield from (c for c in checks if c is not None)
    yield from (
        Check(f"readers of {t}", CheckOutcome.WARNING, why)
        for t, r in rules.items()
        if (why := reader_limits(merging_of(r)))
    )
    for table, one in rules.items():
        try:
            yield from (
                Check("merge engine", CheckOutcome.WARNING, r) for r in engine_remarks(settings, lake, table, one)
            )
        except LakeError as error:
            yield failed_check("merge engine", error)
        try:
            yield from _check_writers(settings, lake, table, one)
        except LakeError as error:
            yield failed_check(f"writers of {table}", error)
    yield run_check("paths", partial(_check_paths, rules))
    many = [table for table, r in rules.items() if kind_of(r).computed and r.buckets > MANY_BUCKETS]
    if many:
        detail = f"more than {MANY_BUCKETS} buckets: {', '.join(many)}; every bucket touched is a file in each commit"
        yield Check("buckets", CheckOutcome.WARNING, detail)
    else:
        yield Check(
            "buckets",
            CheckOutcome.OK,
            f"{counted(len(rules), 'table')} known, {checks.count(None)} not in the lake yet",
        )


def _check_writers(settings: Settings, lake: Storage, table: str, rules: TableRules) -> Iterator[Check]:
    """Settings under another name over the same lake and topics."""
    others, keyed = other_streams(settings, lake, rules)
    if not others:
        return
    name, what = f"writers of {table}", f"stream {', '.join(others)} writes it from the same topics"
    if not keyed:
        mend = "give this stream that name, or a lake of its own"
        yield failed_check(name, ConfigError(f"{what}, so each row would be there twice", do_next=mend))
    else:
        yield Check(name, CheckOutcome.WARNING, f"{what} too: each change is written twice; was name changed?")


def _check_routes(rules: TablesSettings, tables: Sequence[SourceTable]) -> str:
    """Which source tables go to another lake table than their own."""
    merged: dict[SourceTable, list[SourceTable]] = {}
    for table in tables:
        if (kept_as := destination(table, rules)) != table:
            merged.setdefault(kept_as, []).append(table)
    for kept_as, sources in merged.items():
        if len(sources) > 1 and part_of(sources[0], rules) is None:
            raise ConfigError(
                f"{', '.join(map(str, sources[:4]))} would go to {kept_as}, and nothing would distinguish their rows",
                do_next="give the route a shard column, or a table of its own to each",
            )
    lines = [
        f"{' and '.join(map(str, s))} as {t}" if len(s) < 3 else f"{counted(len(s), 'table')} as {t}"
        for t, s in merged.items()
    ]
    return "; ".join(lines) or "none of the known tables is concerned"


def _check_table(lake: Storage, table: str, rules: TableRules) -> Check | None:
    """None for a table that is not in the lake yet."""
    try:
        properties = lake.read(f"{rules.path}/{PROPERTIES_PATH}")
    except StorageNotFoundError:
        return None
    except StorageError as error:
        return failed_check(f"table {table}", error)
    return _checked_sizes(run_check(f"table {table}", partial(_check_existing, properties, rules)), lake, table, rules)


def _checked_sizes(check: Check, lake: Storage, table: str, rules: TableRules) -> Check:
    """The check of an existing table, and a warning where its buckets are far from the planned size."""
    if check.verdict is not CheckOutcome.OK:
        return check
    try:
        held = HudiTable.open(lake.sub(rules.path))
        slices = held.file_slices() if held.config.kind.computed else ()
        advice = bucket_advice(held, slices)
        resizes = proposed(held, rules.files.target_bytes, slices)
    except LakeError as error:
        return failed_check(check.name, error)
    if advice is not None:
        return Check(check.name, CheckOutcome.WARNING, bucket_remark(advice, "CONF", table))
    if resizes:
        return Check(check.name, CheckOutcome.WARNING, ring_remark(resizes, rules.files.target_bytes, "CONF", table))
    return check


def _check_paths(rules: Mapping[str, TableRules]) -> str:
    """Two source tables in one lake table would overwrite each other's rows."""
    tables: dict[str, list[str]] = {}
    for table, rule in rules.items():
        tables.setdefault(rule.path, []).append(table)
    for path, sharing in tables.items():
        if len(sharing) > 1:
            raise ConfigError(
                f"{' and '.join(sharing)} would share the path {path}",
                do_next="put {database} and {table} into tables.path, or exclude one of them",
            )
    return "every table has a path of its own"


def _check_existing(properties: bytes, rules: TableRules) -> str:
    config = TableConfig.from_properties(properties)
    config.check_writable()
    partition = (rules.partition.field,) if rules.partition else ()
    wanted = kind_of(rules)
    kind = config.kind.with_index_of(wanted)
    expected: dict[str, object] = {
        "partition": partition,
        "hive_style": rules.hive_style,
        "type": wanted.type,
        "index": wanted.index,
    }
    existing: dict[str, object] = {
        "partition": config.partition_fields,
        "hive_style": config.hive_style,
        "type": kind.type,
        "index": kind.index,
    }
    if rules.change_log is not None:
        expected["change_log"], existing["change_log"] = rules.change_log, config.change_log
    differing = [
        f"{k} {existing[k]} in the lake, {expected[k]} in the settings" for k in expected if existing[k] != expected[k]
    ]
    if differing:
        raise ConfigError(
            "; ".join(differing),
            do_next="these are fixed when a table is created: put the lake's values into tables.overrides",
            path=rules.path,
        )
    compare_merging(config, rules)
    if not kind.computed:
        return "rows are only added" if kind.appends else f"index {kind.index}, as in the lake"
    if config.bucketing != first_bucketing(rules):
        return f"{counted(config.bucket_count, 'bucket')} in the lake, which count; {rules.buckets} in the settings"
    return f"{counted(config.bucket_count, 'bucket')}, as in the lake"


def _check_columns(settings: Settings) -> Iterator[Check]:
    """Warn of names that are no column of the tables whose columns are known: most often misspelt ones."""
    lake = open_storage(settings.lake.uri, settings.lake.storage_options())
    try:
        yield from map(_nothing, unmatched_columns(settings, known_columns(settings, lake)))
    except StorageError as error:
        yield failed_check("columns", error)


def _nothing(one: UnmatchedName) -> Check:
    return Check(one.where, CheckOutcome.WARNING, f"{one.name} {one.what}")
