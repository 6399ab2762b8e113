"""Templates are learned once for a topic, and what is read by a known one is what the general decoder reads."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import TypeAlias

import pytest

from binlake.decode.options import DecodeOptions
from binlake.decode.quarantine import Buffer
from binlake.decode.templates import reading, scan
from binlake.decode.templates.template import Template
from tests.binlake.decode.events import declared, envelope
from tests.binlake.decode.recordings import cut, history_of, options_of, records, topics
from tests.binlake.decode.ways import equal

COLUMNS = {"id": "bigint", "name": "varchar(50)", "d": "double"}
ROW: dict[str, object] = {"id": 1, "name": "a", "d": 0.5}
Learned: TypeAlias = Callable[[list[bytes], str], int]


@pytest.fixture
def learned(monkeypatch: pytest.MonkeyPatch) -> Learned:
    """Reads a chunk of a topic, all by templates; returns how many were learned for it."""
    made: list[Template | None] = []
    learn = scan._learn
    monkeypatch.setattr(scan, "_KNOWN", reading.KnownTemplates())

    def noted(message: Buffer, slots: dict[str, int], max_nesting: int) -> Template | None:
        made.append(learn(message, slots, max_nesting))
        return made[-1]

    monkeypatch.setattr(scan, "_learn", noted)

    def read(messages: list[bytes], topic: str) -> int:
        made.clear()
        found = scan.scan_envelopes(messages, range(len(messages)), traced=False, max_nesting=64, topic=topic)
        assert found is not None
        assert len(found.rows) == len(messages)
        assert found.events.tables == ["orders" if b'"orders"' in m else "other" for m in messages]
        return len(made)

    return read


def _inserts(first: int, **more: object) -> list[bytes]:
    return [envelope(ROW | {"id": n} | more, pos=n, table="orders") for n in range(first, first + 20)]


def test_a_topic_learns_a_form_once(learned: Learned) -> None:
    assert learned(_inserts(1), "a") == 1
    assert learned(_inserts(30), "a") == 0
    assert learned(_inserts(30), "b") == 1, "another topic"


def test_another_form_is_learned(learned: Learned) -> None:
    learned(_inserts(1), "a")
    delete = envelope(None, ROW, "d", pos=9, table="orders")
    assert learned([*_inserts(1), delete], "a") == 1
    assert learned([delete, *_inserts(1)], "a") == 0, "both are known, whichever comes first"
    assert learned(_inserts(1, added=5), "a") == 1, "after an ALTER"
    assert learned([envelope(ROW, pos=1, table="other")], "a") == 1, "of another table"


def test_what_is_kept_is_bounded(learned: Learned, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_MOST_TOPICS", 3)
    for topic in "abcd":
        learned(_inserts(1), topic)
    assert len(scan._KNOWN._by_key) == 1
    for n in range(20):
        learned(_inserts(1, **{f"c{n}": n}), "e")
    assert max(map(len, scan._KNOWN._by_key.values())) == reading._MOST_OF_TOPIC
    learned([envelope(ROW | {"name": "x" * 20_000}, pos=1, table="orders")], "f")
    assert ("f", 64) not in scan._KNOWN._by_key, "a long message's is not kept"


@pytest.mark.parametrize("seed", range(6))
def test_chunks_of_changing_columns_are_told_alike(seed: int) -> None:
    """Columns come, go and change places from chunk to chunk, with deletes and updates between them."""
    dice, schema = random.Random(seed), declared(COLUMNS | {"e": "bigint", "g": "varchar(9)"}, ("id",))
    rows = [ROW, ROW | {"e": 7}, dict(reversed(ROW.items())), {"id": 1, "g": "q"}, ROW | {"g": None, "e": 1}]
    for _ in range(12):
        some = dice.sample(rows, 2)
        values: list[bytes | None] = []
        for n in range(30):
            row = dice.choice(some) | {"id": n}
            kinds = [envelope(row, pos=n), envelope(row, row | {"d": 9.5}, "u", pos=n), envelope(None, row, "d", pos=n)]
            values.append(dice.choice(kinds))
        equal(records([None] * len(values), values), schema, DecodeOptions(before_of="all"))


def test_recordings_in_small_chunks_are_told_alike() -> None:
    options, history = options_of("plain", before_of="all"), history_of("bank", "plain")
    chunks = 0
    for topic, partitions in topics("bank", "plain").items():
        for part in partitions.values() if not topic.startswith("_history") else ():
            for chunk in itertools.islice(cut(part, 40), 5):
                equal(chunk, history, options)
                chunks += 1
    assert chunks > 5
