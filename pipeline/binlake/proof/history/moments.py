"""All tables of a stream as of one moment: a source transaction, a place of the binlog, a time, or a tag.

``position.cuts`` says which commits belong together; here the tables, the ledger and the quarantine are asked for it. A
moment that a table cannot be read at is refused, with the nearest ones that can be had.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property

from binlake.decode.changes import SourceTable
from binlake.position.cuts import Cut, Moments
from binlake.position.ledger import Ledger
from binlake.position.record_reader import RecordKey, RecordReader
from binlake.position.tags import Tags
from binlake.position.waymarks import Place, QuarantinedPlace, TableEvidence
from binlake.settings import Settings
from binlake.source.binlog.places import PARTITION, offset_at, offset_of, place_of
from binlake.source.binlog.topic import is_binlog
from binlake.source.offsets import NO_OFFSETS
from binlake.stream.definitions.learned import Definitions
from binlake.tables.catalog import CatalogTable, catalog_tables, no_such_table
from hudilake import Commit, Reader, Table
from hudilake.errors import ConfigError, UnsupportedError
from hudilake.format.timeline.instant import RESTORE
from hudilake.read import Snapshot, TableReader, instant_of
from hudilake.storage import open_storage
from hudilake.table.directory import BrokenTable
from hudilake.table.table import HudiTable

#: A date or an instant; what is none of these, and no place of a binlog, is a transaction.
_TIME = re.compile(r"\d{14,17}|\d{4}-\d\d-\d\d([ T].*)?")
#: ``mariadb-bin.000003:4711``, or without the file's name, as places are printed.
_PLACE = re.compile(r"(?:[^:]*\.)?\d+:\d+")
_MARIADB = re.compile(r"(\d+)-\d+-(\d+)")
_THREADS = 8


@dataclass(frozen=True)
class LakeMoment:
    """The tables of a stream as of one moment.

    Args:
        cut: the commits, by the URI of each table's root.
        places: the same URIs, by the tables' names.
    """

    cut: Cut
    places: Mapping[str, str]
    _tables: Mapping[str, HudiTable]

    def scan(self, table: str, columns: Sequence[str] | None = None, filter: str | None = None) -> Reader:
        """Plan a read of a table, ``database.table``, at the moment; arguments as ``hudilake.Table.scan``.

        Raises ConfigError for a table that is not among them, and as ``hudilake.Table.scan``.
        """
        uri = self.places.get(table)
        if uri is None or uri not in self.cut.commits:
            raise ConfigError(
                self.cut.missing.get(uri or "", "the stream has no such table"),
                do_next="ask for a table of the moment, or for another moment",
                table=table,
            )
        return Table(self._tables[uri]).scan(columns, filter, as_of=self.cut.commits[uri])


class StreamLake:
    """The tables of a stream in its lake, for readers.

    Args:
        settings: of the stream.

    Raises ConfigError, CorruptDataError, StorageError.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._root = open_storage(settings.lake.uri, settings.lake.storage_options())
        self._state = open_storage(settings.state_uri, settings.state_options())
        # before the tables: what a commit adds meanwhile lies beyond it
        self._ledger = Ledger.load(self._state, settings.name)
        self._known = list(catalog_tables(settings, self._root))
        self._places = [place for place in self._known if isinstance(place, CatalogTable)]
        with ThreadPoolExecutor(_THREADS) as pool:
            opened = list(pool.map(lambda place: HudiTable.open(place.storage), self._places))
            self.tables = {place.storage.uri: table for place, table in zip(self._places, opened, strict=True)}

    def at(self, moment: str | datetime, tables: Collection[str] | None = None) -> LakeMoment:
        """The tables as of a moment.

        Args:
            moment: a tag; a transaction in the words of the server or the connector (a GTID): the state right behind
                it; a place of the binlog, ``mariadb-bin.000003:4711``; or a time (UTC): the newest state between two
                batches that was complete by then.
            tables: names of the tables that matter, ``database.table``; None for all of the stream.

        Raises ConfigError if one of them cannot be had at that moment, with the nearest moments; and UnsupportedError,
        CorruptDataError, StorageError.
        """
        named = {place.name: place.storage.uri for place in self._places}
        for name in tables or ():
            if name not in named:
                raise no_such_table(self._settings, self._root, name)
        uris = None if tables is None else [named[name] for name in tables]
        text = moment if isinstance(moment, str) else f"{moment.astimezone(UTC):%Y%m%d%H%M%S%f}"[:17]
        return LakeMoment(self.cut_at(text, uris), named, self.tables)

    def cut_at(self, moment: str, uris: Collection[str] | None = None) -> Cut:
        """The commits of tables at a moment; ``uris``: of the tables' roots. Arguments and errors as ``at``."""
        asked = list(self.tables) if uris is None else list(uris)
        if uris is None and (broken := next((one for one in self._known if isinstance(one, BrokenTable)), None)):
            raise broken.error
        if foreign := next((uri for uri in asked if uri not in self.tables), None):
            raise ConfigError(
                "the table is none of those that the stream's cuts are of",
                do_next="leave out --at, or ask tables of this stream alone",
                table=foreign,
            )
        moment = moment.strip()
        tag = Tags(self._state).find(moment)
        if tag is not None:
            absent = {uri: "the tag does not hold it" for uri in asked if uri not in tag.commits}
            cut = Cut({}, tag.commits, NO_OFFSETS, tag.completed, tag.transaction, absent)
            return self._whole(cut, moment, ())
        if not self.moments.places:
            raise ConfigError(
                self.why_none(), do_next="read each table by itself, with --as-of", stream=self._settings.name
            )
        places = self.moments.places
        if _TIME.fullmatch(moment):
            return self._by_time(moment, asked)
        if self._settings.source.mysql is not None and _PLACE.fullmatch(moment):
            place: Place = {PARTITION: offset_at(moment)}
        elif moment in self.moments.transactions:
            place = self.moments.transactions[moment]
        else:
            raise self._no_such_transaction(moment, asked)
        cut = self.moments.at(place, asked)
        return self._readable(self._whole(cut, moment, self._around(place, places, asked)), moment, asked)

    def cuts(self) -> list[Cut]:
        """The states between two batches that the tables can be read at, the oldest first; a table may be missing.
        Raises the error of a table that cannot be opened, and as ``at``."""
        for one in self._known:
            if isinstance(one, BrokenTable):
                raise one.error
        return self.moments.cuts()

    def why_none(self) -> str:
        """Why there is no cut at all."""
        if not self._settings.batch.transaction_consistent and self._settings.source.mysql is None:
            return "the stream has no cuts: batch.transaction_consistent is off"
        return "the stream has no cut yet: one comes with a whole batch"

    # -- what is known -------------------------------------------------------------------------------------------------

    @cached_property
    def moments(self) -> Moments:
        """The states of the tables. Raises CorruptDataError, StorageError, UnsupportedError."""
        with ThreadPoolExecutor(_THREADS) as pool:
            histories = list(pool.map(lambda table: Table(table).history(), self.tables.values()))
        if not any(RecordKey.TRANSACTIONS in commit.extra for history in histories for commit in history):
            return Moments(self._settings.name, {})
        mysql = self._settings.source.mysql is not None
        lacks = self._quarantined()
        statements = self._statements()

        def evidence(place: CatalogTable, history: list[Commit]) -> TableEvidence:
            table = self.tables[place.storage.uri]
            recorded = RecordReader.newest_of(table)
            repaired = recorded.repaired
            carried = max((entry.order for entry in recorded.ddl or ()), default=-1) if mysql else -1
            mine = {place.source, place.called, recorded.origin}
            return TableEvidence(
                commits=history,
                restores=[one.completion_time or "" for one in table.timeline.completed_actions({RESTORE})],
                reached=self._reached(place.source),
                transaction=self._newest_transaction(place.source),
                loaded=recorded.load if mysql else None,
                repaired=repaired.position if repaired is not None and mysql else None,
                dumped=recorded.dumped,
                lacks=[one for source, one in lacks if source is None or self._is_of(source, place)],
                waiting=[offset for offset, order, names in statements if order > carried and names & mine],
                binlog=mysql,
            )

        known = map(evidence, self._places, histories)
        return Moments(self._settings.name, dict(zip(self.tables, known, strict=True)))

    def _reached(self, source: SourceTable) -> Place | None:
        """Up to where a table has everything, by the ledger. One that was worked out of the tables' commits does not
        say it until a batch is over."""
        ledger, settings = self._ledger, self._settings
        if ledger is None or not ledger.batch or source not in ledger.tables:
            return None
        if settings.source.mysql is None:
            topic = settings.kafka.transaction_topic or ""
            consistent = settings.batch.transaction_consistent and source not in ledger.behind
            return (dict(ledger.positions.get(topic, {})) or None) if consistent else None
        positions = ledger.behind.get(source, ledger.positions)
        return next((dict(parts) for topic, parts in positions.items() if is_binlog(topic)), None)

    def _newest_transaction(self, source: SourceTable) -> str | None:
        ledger = self._ledger
        if ledger is None or source in ledger.behind or self._settings.source.mysql is None:
            return None
        return next(iter(ledger.transactions.ended), None)

    def _quarantined(self) -> list[tuple[SourceTable | None, QuarantinedPlace]]:
        """The records in quarantine, each with its table if that is known. Raises CorruptDataError, StorageError."""
        storage = self._root.sub(self._settings.quarantine_path)
        if not HudiTable.exists(storage):
            return []
        columns = ["topic", "partition", "offset", "source_table", "replayed_at", "replayed_to"]
        rows = Table(HudiTable.open(storage)).scan(columns).to_arrow().to_pylist()
        return [
            (
                SourceTable(*row["source_table"].split(".", 1)) if "." in (row["source_table"] or "") else None,
                QuarantinedPlace(row["topic"], row["partition"], row["offset"], _since(row)),
            )
            for row in rows
        ]

    def _is_of(self, source: SourceTable, place: CatalogTable) -> bool:
        return source == place.source or self._settings.table_rules(source).path == place.rules.path

    def _statements(self) -> list[tuple[int, int, frozenset[SourceTable]]]:
        """The statements of a binlog that a table may still have to carry out: offset, ordering value, tables."""
        if self._settings.source.mysql is None:
            return []
        return list(_statements(map(json.loads, Definitions(self._settings).load()), self._settings))

    # -- moments -------------------------------------------------------------------------------------------------------

    def _by_time(self, moment: str, asked: Sequence[str]) -> Cut:
        time = instant_of(moment)
        oldest: Cut | None = None
        for place in reversed(self.moments.places):
            cut = self.moments.at(place, asked)
            if cut.missing or not cut.commits:
                continue
            if cut.completed <= time:
                return self._readable(cut, moment, asked)
            oldest = cut
        where = f"the oldest cut is of {oldest.completed}" if oldest is not None else "they have no cut in common"
        raise _refused(f"all tables together stand at no such place: {where}", moment)

    def _no_such_transaction(self, moment: str, asked: Sequence[str]) -> ConfigError:
        known = self.moments.transactions
        ours = _MARIADB.fullmatch(moment)
        earlier = later = None
        if ours is not None:
            numbers = {
                int(match[2]): name
                for name in known
                if (match := _MARIADB.fullmatch(name)) is not None
                and match[1] == ours[1]
                and not self.moments.at(known[name], asked).missing
            }
            earlier = max((number for number in numbers if number < int(ours[2])), default=None)
            later = min((number for number in numbers if number > int(ours[2])), default=None)
            near = [numbers[number] for number in (earlier, later) if number is not None]
            if near:
                newest = " (the newest one)" if later is None else ""
                return _refused(
                    f"all tables together stand at no such place: behind {' and '.join(near)} they do{newest}", moment
                )
        newest_cut = next((cut for cut in self._descending(asked)), None)
        where = "they have no cut in common"
        if newest_cut is not None:
            where = f"the newest cut ends with {newest_cut.transaction or newest_cut.completed}"
        return _refused(f"all tables together stand at no such place: {where}", moment)

    def _descending(self, asked: Sequence[str]) -> Iterator[Cut]:
        cuts = (self.moments.at(place, asked) for place in reversed(self.moments.places))
        return (cut for cut in cuts if cut.commits and not cut.missing)

    def _around(self, place: Place, places: Sequence[Place], asked: Sequence[str]) -> Iterable[Cut]:
        """The nearest cuts before and behind a place that all these tables have."""
        height = sum(place.values())

        def first(some: Iterable[Place]) -> Iterator[Cut]:
            cuts = (self.moments.at(one, asked) for one in some)
            yield from [cut for cut in cuts if cut.commits and not cut.missing][:1]

        yield from first(one for one in reversed(places) if sum(one.values()) < height)
        yield from first(one for one in places if sum(one.values()) > height)

    def _whole(self, cut: Cut, moment: str, around: Iterable[Cut]) -> Cut:
        """A cut that has a state of every table. Raises ConfigError."""
        if not cut.missing:
            return cut
        uri, why = next(iter(cut.missing.items()))
        near = " or ".join(self.words(one) for one in around)
        raise _refused(f"{self._name(uri)} has no state there: {why}", moment, near)

    def _readable(self, cut: Cut, moment: str, asked: Sequence[str]) -> Cut:
        """A cut whose files are there. Raises ConfigError with the oldest one that can be read."""
        if (cleaned := self._cleaned(cut)) is None:
            return cut
        later = (cut for cut in reversed(list(self._descending(asked))) if self._cleaned(cut) is None)
        near = next(map(self.words, later), "")
        raise _refused(f"{self._name(cleaned)} can no longer be read there: files were cleaned", moment, near)

    def _cleaned(self, cut: Cut) -> str | None:
        """The first table of a cut whose files of that time may have been cleaned."""
        for uri, commit in cut.commits.items():
            reader = TableReader(self.tables[uri])
            if commit >= reader.retained_since:
                continue
            try:
                reader.plan(Snapshot(commit))
            except UnsupportedError:
                return uri
        return None

    def _name(self, uri: str) -> str:
        return next((place.name for place in self._places if place.storage.uri == uri), uri)

    def words(self, cut: Cut) -> str:
        """A cut in words that ``at`` takes."""
        if cut.transaction is not None:
            return cut.transaction
        return str(place_of(cut.place[PARTITION])) if self._settings.source.mysql is not None else cut.completed


def _refused(what: str, moment: str, near: str = "") -> ConfigError:
    do_next = f"ask for {near}; binlake cuts lists all" if near else "choose one of those that binlake cuts lists"
    return ConfigError(what, do_next=do_next, at=moment)


def _since(row: Mapping[str, object]) -> str:
    """The instant by which a quarantined record was brought; "" if it was not."""
    to, time = row["replayed_to"], row["replayed_at"]
    if isinstance(to, str):
        return to
    return f"{time.astimezone(UTC):%Y%m%d%H%M%S%f}"[:17] if isinstance(time, datetime) else ""


def _statements(
    records: Iterable[Mapping[str, object]], settings: Settings
) -> Iterator[tuple[int, int, frozenset[SourceTable]]]:
    from binlake.decode.ddl.clauses import Action  # only streams of a binlog have such records
    from binlake.decode.ddl.statements import parse_ddl
    from binlake.decode.order import binlog_order

    for record in records:
        source = record["source"]
        if not isinstance(source, dict) or record.get("tableChanges") or not record.get("ddl"):
            continue
        server, file, position = int(source["server_id"]), str(source["file"]), int(source["pos"])
        effects = parse_ddl(str(record["ddl"]), str(record["databaseName"]))
        effects = tuple(effect for effect in effects if effect.action not in (Action.CREATE, Action.TRUNCATE))
        names = frozenset(name for effect in effects for name in (effect.source, effect.to) if name is not None)
        if names:
            epoch = settings.source.epoch_of_server.get(server, settings.source.epoch)
            yield offset_of(file, position), binlog_order(epoch, file, position), names
