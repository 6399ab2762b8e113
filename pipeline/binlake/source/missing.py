"""Errors for offsets that a stream needs and Kafka no longer has. They are skipped only on request."""

from __future__ import annotations

from collections.abc import Iterable

from binlake.source.offsets import OffsetRange
from hudilake.errors import BadInputError

_GO_ON = (
    "bring the records back into the topic; or go on without them by `binlake run CONF --skip-missing`, then fetch the "
    "topic's tables anew by `binlake table resync`; or raise source.epoch by one and let the connector take a new "
    "snapshot of these tables: its rows win then, but rows that these events deleted stay"
)


def missing_error(missing: Iterable[OffsetRange]) -> BadInputError:
    """The error for offsets that were deleted before they were read: by retention, or by hand."""
    found = sorted(missing, key=lambda r: (r.topic, r.partition, r.start))
    count = sum(len(r) for r in found)
    what = "offset was" if count == 1 else "offsets were"
    return BadInputError(
        f"{count} {what} deleted from Kafka before the stream had read them: {describe(found)}", do_next=_GO_ON
    )


def describe(ranges: Iterable[OffsetRange]) -> str:
    """The ranges as text, both ends included: ``shop.orders/0: 5..99``."""
    return ", ".join(f"{r.topic}/{r.partition}: {r.start}..{r.end - 1}" for r in ranges)


def made_anew(topic: str, partition: int, position: int, end: int) -> BadInputError:
    """The error for a topic that was deleted and created again: unread records are unknown, and offsets mean others."""
    return BadInputError(
        f"the stream stands at offset {position} but the partition ends at {end}: the topic "
        "was deleted and created again",
        do_next=NEW_TOPIC,
        topic=topic,
        partition=partition,
    )


NEW_TOPIC = (
    "give the stream a new name and a new lake path, so that the topic is read from its beginning; "
    "or bring the old topic back"
)
