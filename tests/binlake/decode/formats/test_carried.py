"""What a message tells of the changes that its format does not carry."""

from __future__ import annotations

import json
from typing import Any

import pytest

from binlake.decode.formats.reader import not_carried
from binlake.decode.options import EventFormat

ENVELOPE = {"before": None, "after": {"id": 1}, "source": {"db": "shop", "table": "t"}, "op": "c"}
MAXWELL = {"database": "shop", "table": "t", "type": "insert", "ts": 1, "data": {"id": 1}}
CANAL = {"database": "shop", "table": "t", "type": "INSERT", "data": [{"id": "1"}], "isDdl": False}
FLAT = {"id": 1, "__op": "c", "__deleted": "false"}
TRANSACTION = {"status": "BEGIN", "id": "1", "event_count": None}


@pytest.mark.parametrize("declared", ["auto", "debezium"])
@pytest.mark.parametrize(
    ("document", "said"),
    [(ENVELOPE, None), (CANAL, None), (TRANSACTION, None), (FLAT, "flat form"), (MAXWELL, "Maxwell")],
    ids=["envelope", "canal", "transaction", "flat", "maxwell"],
)
def test_each_form_says_what_it_lacks(declared: str, document: dict[str, Any], said: str | None) -> None:
    for message in (document, {"schema": {"type": "struct"}, "payload": document}):
        found = not_carried(EventFormat(declared), json.dumps(message).encode(), ddl_topics=True)
        if said is None or (said == "Maxwell" and declared == "debezium"):
            assert found is None
        else:
            assert found is not None
            assert said in found
            assert "binlake verify" in found


def test_what_is_not_known_is_not_said() -> None:
    assert not_carried(EventFormat.AUTO, None, ddl_topics=True) is None
    assert not_carried(EventFormat.AUTO, b"\0\0\0\0\1avro", ddl_topics=True) is None
    assert not_carried(EventFormat.AUTO, b"{", ddl_topics=True) is None
    assert not_carried(EventFormat.JSON, json.dumps(FLAT).encode(), ddl_topics=True) is None
    assert "TRUNCATE" in str(not_carried(EventFormat.MAXWELL, None, ddl_topics=True))
    silent = json.dumps({"id": 1, "__op": "c"}).encode()
    assert "tombstone_deletes" in str(not_carried(EventFormat.AUTO, silent, ddl_topics=True))
    assert "deletes" not in str(not_carried(EventFormat.AUTO, silent, ddl_topics=True, tombstone_deletes=True))
    assert "deletes" not in str(not_carried(EventFormat.AUTO, json.dumps(FLAT).encode(), ddl_topics=True))
    assert "kafka.ddl_topics" in str(not_carried(EventFormat.AUTO, json.dumps(FLAT).encode(), ddl_topics=False))
