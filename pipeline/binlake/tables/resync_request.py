"""Makes the request to fetch a table anew: what the connector is asked for, and which rows are old."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow.compute as pc

from binlake.decode.changes import POSITION_BITS, SourceTable, ordering_value
from binlake.position.ledger import Ledger
from binlake.position.record_reader import RecordReader
from binlake.position.table_requests import ResyncRequest
from binlake.rows.merging.event_orders import event_orders, order_columns
from binlake.rows.upsert.target import is_keyless, kind_of
from binlake.settings import Settings
from binlake.source.offsets import topic_suffix
from binlake.tables.feeds import Feeds, SourceOf
from binlake.tables.other_rows import refuse_lacking
from binlake.tables.presence import check_known, is_used
from hudilake.clock import new_uuid, now_ms
from hudilake.errors import ConfigError, UnsupportedError
from hudilake.format.definition.kind_support import TableOperation
from hudilake.read.slice import read_file_slice
from hudilake.storage import open_storage
from hudilake.table.table import HudiTable


def resync_request(
    settings: Settings, ledger: Ledger, table: SourceTable, earlier: ResyncRequest | None = None
) -> ResyncRequest:
    """The request to fetch a table anew by Debezium's incremental snapshot. The stream sends the signal: it must know
    the request before the first row comes.

    ``table``: the lake table. ``earlier``: its last request.

    Raises ConfigError where settings are missing, UnsupportedError for a table that cannot be fetched in this way,
    CorruptDataError, StorageError.
    """
    debezium = settings.source.debezium
    refuse_lacking(settings.table_rules(table), TableOperation.RESYNC, str(table))
    if settings.source.format in ("canal", "maxwell", "json", "avro"):
        raise UnsupportedError(
            f"a table of format {settings.source.format} cannot be fetched anew by a signal",
            do_next="load the table again under a new path",
            table=str(table),
        )
    if debezium.signal_topic is None or debezium.notification_topic is None:
        raise ConfigError(
            "the settings do not name the connector's topics of signals and notifications",
            do_next="set source.debezium.signal_topic and source.debezium.notification_topic, and enable both at the "
            "connector (signal.enabled.channels, notification.enabled.channels)",
            table=str(table),
        )
    root = open_storage(settings.lake.uri, settings.lake.storage_options())
    storage = root.sub(settings.table_rules(table).path)
    opened = None  # a lost table is fetched anew, too
    if is_used(storage):
        check_known(settings, root, ledger, table)
        opened = HudiTable.open(storage)
    recorded = RecordReader.newest_of(opened) if opened is not None else None
    origin = _origin(settings, ledger, table, opened, recorded)
    standing = recorded.positions_of(settings.name) if recorded is not None else ledger.applied(table)
    prefix = debezium.topic_prefix or _prefix(origin.names, list(standing))
    newest = _newest_order(settings, ledger, origin.first, opened)
    if recorded is not None:
        newest = max(newest, recorded.truncates.whole)  # rows up to there do not come back
    order = max(newest, earlier.order + 1) if earlier is not None else newest  # its rows have the next value
    return ResyncRequest(new_uuid(), origin.known(), prefix, order, newest, now_ms())


def _origin(
    settings: Settings, ledger: Ledger, table: SourceTable, opened: HudiTable | None, recorded: RecordReader | None
) -> SourceOf:
    if opened is not None and is_keyless(opened.config):
        raise UnsupportedError(
            "a table without a key cannot be fetched anew: its rows cannot be told apart",
            do_next="give it a key in tables.overrides, or load it again under a new path",
            table=str(table),
        )
    kind = opened.config.kind if opened is not None else kind_of(settings.table_rules(table))
    kind.refuse(TableOperation.RESYNC, str(table))
    text = "a table with a merge engine cannot be fetched anew: its rows are not those of the source"
    if (why := settings.table_rules(table).merge.refusal(text)) is not None:
        raise UnsupportedError(
            why,
            do_next="load it again under a new path",
            table=str(table),
        )
    known = recorded.origin if recorded is not None else None
    origins = Feeds.load(settings).of(table, {*ledger.heights, known or table})
    if len(origins) != 1 or origins[0].part is not None:
        raise UnsupportedError(
            f"several source tables go to {table}, and only a table of one source table can be fetched anew",
            do_next="load the table again under a new path",
            table=str(table),
        )
    return origins[0]


def _prefix(names: Sequence[SourceTable], topics: list[str]) -> str:
    """The connector's ``topic.prefix``: what stands before the table's name in the name of its topic. ``names``: all
    that the table had at the source."""
    suffixes = [f".{topic_suffix(name)}" for name in names]
    prefixes = {topic.removesuffix(suffix) for topic in topics for suffix in suffixes if topic.endswith(suffix)}
    if len(prefixes) != 1:
        raise ConfigError(
            f"the connector's topic.prefix cannot be told from the topics {', '.join(topics) or '(none)'}",
            do_next="set source.debezium.topic_prefix",
            table=str(names[-1]),
        )
    return prefixes.pop()


def _newest_order(settings: Settings, ledger: Ledger, origin: SourceTable, opened: HudiTable | None) -> int:
    """An ordering value that no stored row exceeds: of the newest change that the stream has read, and of the newest
    row of an initial snapshot. After the loss of the ledger, the rows themselves tell."""
    snapshot = ordering_value(settings.source.epoch, 0, (1 << POSITION_BITS) - 1)
    orders = [order for parts in ledger.heights.get(origin, {}).values() for order, _ in parts.values()]
    if not orders and opened is not None:
        orders = _stored_orders(opened)
    return max([snapshot, *orders])


def _stored_orders(opened: HudiTable) -> list[int]:
    merging = opened.config.merging
    columns = order_columns(merging, opened.schema)
    slice_rows = [read_file_slice(opened, piece, columns=columns) for piece in opened.file_slices()]
    return [pc.max(event_orders(rows, merging)).as_py() for rows in slice_rows if len(rows)]
