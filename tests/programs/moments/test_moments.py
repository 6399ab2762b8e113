"""At random transactions under load, with kills, the lake is what a replica of the source is right behind them."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest

from binlake.position.cuts import Cut
from binlake.proof.history.moments import StreamLake
from hudilake.errors import ConfigError
from tests.programs.moments.replica import DATABASE, ReplicaServer, SourceReplica
from tests.programs.moments.story import Compared, Story, compare
from tests.programs.oracle.binlog.run import start_server

_TABLES = [f"{DATABASE}.{name}" for name in ("accounts", "notes", "orders", "late")]


@dataclass
class Ended:
    """A story that has ended, its lake, and a replica at the beginning of the source's binlog."""

    story: Story
    lake: StreamLake
    replica: SourceReplica

    def named(self) -> list[Cut]:
        """The cuts right behind a transaction, the oldest first."""
        return [cut for cut in self.lake.cuts() if cut.transaction is not None]


@contextmanager
def ended(place: Path, seed: int, seconds: float) -> Iterator[Ended]:
    with (
        start_server() as server,
        tempfile.TemporaryDirectory(prefix="rp") as other,
        ReplicaServer(Path(other)) as beside,
    ):
        story = Story(server, place, seed, seconds)
        story.run()
        with closing(SourceReplica(beside, server)) as replica:
            yield Ended(story, StreamLake(story.settings), replica)


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ended]:
    with ended(tmp_path_factory.mktemp("short"), 1, 8.0) as one:
        yield one


def chosen(cuts: list[Cut], count: int, seed: int) -> list[Cut]:
    numbers = sorted(Random(seed).sample(range(len(cuts)), min(count, len(cuts))))
    return [cuts[number] for number in numbers]


def check(compared: Compared, moments: int) -> None:
    assert compared.wrong == []
    assert compared.tables >= 3 * moments  # each that was there from the beginning
    assert {name for name, _ in compared.refused} <= {"late"}, compared.refused


@pytest.mark.full
@pytest.mark.database
def test_random_transactions_are_what_the_source_was(short: Ended) -> None:
    cuts = short.named()
    some = [*chosen(cuts[:-1], 6, 1), cuts[-1]]
    check(compare(short.lake, short.replica, some), len(some))
    assert short.story.kills >= 2
    assert short.story.transactions > 300
    before = Compared()  # the control: another moment is noticed
    before.take(short.lake, some[-2].transaction or "", short.replica.tables())
    assert before.wrong


@pytest.mark.full
@pytest.mark.database
def test_snapshots_under_load_are_the_lake_at_their_places_or_are_refused(short: Ended) -> None:
    """Most of them lie inside a batch; of a table that the batch did not touch the state is known all the same."""
    compared = Compared()
    for shown in short.story.snapshots:
        compared.take(short.lake, shown.place, shown.tables)
        if compared.tables:
            compared.take(short.lake, shown.transaction, shown.tables)
    assert compared.wrong == []
    assert compared.tables
    assert all(re.search(r"ask for |that binlake cuts lists", why) for _, why in compared.refused)


@pytest.mark.database
def test_other_transactions_are_refused_with_those_around(short: Ended) -> None:
    numbers = [int((cut.transaction or "").rpartition("-")[2]) for cut in short.named() if len(cut.commits) == 4]
    assert numbers == sorted(set(numbers))
    between = [number for number in range(numbers[0], numbers[-1]) if number not in set(numbers)]
    for number in Random(1).sample(between, 20):
        with pytest.raises(ConfigError, match="stand at no such place") as caught:
            short.lake.at(f"3-4711-{number}", _TABLES)
        near = [int(one) for one in re.findall(r"3-4711-(\d+)", caught.value.what)]
        assert near == [max(n for n in numbers if n < number), min(n for n in numbers if n > number)]


@pytest.mark.database
def test_a_moment_that_was_not_reached_is_refused(short: Ended) -> None:
    newest = short.named()[-1]
    with pytest.raises(ConfigError, match=rf"behind {newest.transaction} they do \(the newest one\)"):
        short.lake.at("3-4711-99999999")
    with pytest.raises(ConfigError, match="has not come so far") as caught:
        short.lake.at("mariadb-bin.000099:4")
    assert f"ask for {newest.transaction}" in str(caught.value)


@pytest.mark.database
def test_a_table_made_later_is_refused_alone(short: Ended) -> None:
    """At a cut that the three tables of the beginning have reached."""
    early = next(cut for cut in short.named() if len(cut.commits) == 3)
    assert early.transaction is not None
    with pytest.raises(ConfigError, match=r"shop\.late has no state there: it has no commit up to there") as caught:
        short.lake.at(early.transaction)
    near = str(caught.value).partition("ask for ")[2].partition(";")[0]
    assert len(short.lake.at(near).cut.commits) == 4
    moment = short.lake.at(early.transaction, ["shop.accounts", "shop.orders"])
    assert moment.scan("shop.accounts").to_arrow().num_rows
    with pytest.raises(ConfigError, match="ask for a table of the moment"):
        moment.scan("shop.late")


@pytest.mark.full
@pytest.mark.database
@pytest.mark.parametrize("seed", [2, 3])
def test_fifty_random_transactions_are_what_the_source_was(tmp_path: Path, seed: int) -> None:
    with ended(tmp_path, seed, 25.0) as one:
        some = chosen(one.named(), 50, seed)
        assert len(some) == 50
        check(compare(one.lake, one.replica, some), 50)
        assert one.story.kills >= 4
