"""Which bucket counts a table has, and since when.

The replacecommit that moves the rows of a table to other buckets states the new counts, so both take effect at once.
``hoodie.properties`` is settled afterwards: it keeps every count that the table has had with the instant of its
replacecommit, and the newest whose instant is completed counts. So a crash in between, a restore and the archival of
the instant change nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from hudilake.errors import CorruptDataError
from hudilake.format.definition.bucketing import Bucketing, PartitionBuckets, bucketing_of
from hudilake.format.definition.config import TableConfig
from hudilake.format.definition.consistent import ConsistentBuckets
from hudilake.format.definition.properties import PROPERTIES_PATH
from hudilake.format.timeline.instant import REPLACE_COMMIT
from hudilake.format.timeline.timeline import Timeline

#: Of a replacecommit's extra metadata: the buckets of the table since then.
BUCKETS_KEY = "binlake.buckets"
#: Of ``hoodie.properties``: the buckets that the table has had.
_HISTORY = "binlake.buckets.history"


@dataclass(frozen=True, slots=True)
class _Counts:
    """The buckets of a table since an instant; "" for those it was made with."""

    since: str
    bucketing: Bucketing


def stated_buckets(bucketing: Bucketing) -> Mapping[str, str]:
    """What a replacecommit states of the buckets since then; nothing of rings, whose nodes have files of their own."""
    if isinstance(bucketing, ConsistentBuckets):
        return {}
    return {BUCKETS_KEY: json.dumps(_to_json(bucketing), separators=(",", ":"), ensure_ascii=False)}


def with_buckets_of(config: TableConfig, timeline: Timeline) -> TableConfig:
    """The configuration with the bucket counts that count as of a timeline.

    Raises CorruptDataError for a replacecommit that cannot be read, StorageError.
    """
    known = [*_settled(config), *_stated(timeline)]
    if not known:
        return config
    if known[0].since:
        known.insert(0, _Counts("", config.bucketing))
    counted = [one for one in known if not one.since or timeline.is_completed(one.since)]
    newest = max(counted, key=lambda one: one.since)
    history = {one.since: one.bucketing for one in counted}
    text = json.dumps([[since, _to_json(history[since])] for since in sorted(history)], separators=(",", ":"))
    extra = {**config.extra, _HISTORY: text}
    return replace(config.with_bucketing(newest.bucketing), extra=extra)


def bucketing_at(config: TableConfig, timeline: Timeline, as_of: str | None) -> Bucketing:
    """The buckets that counted at a moment.

    Args:
        config: with the counts as of now (``with_buckets_of``).
        timeline: as of that moment.
        as_of: only writes requested at or before this instant; None for all.
    """
    counted = [
        one
        for one in _settled(config)
        if not one.since or ((as_of is None or one.since <= as_of) and timeline.is_completed(one.since))
    ]
    return max(counted, key=lambda one: one.since).bucketing if counted else config.bucketing


def _settled(config: TableConfig) -> list[_Counts]:
    text = config.extra.get(_HISTORY, "[]")
    try:
        return [_Counts(since, _from_json(said)) for since, said in json.loads(text)]
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise CorruptDataError(
            f"{_HISTORY} cannot be read: {text[:200]!r}",
            do_next="restore hoodie.properties from a copy, or use the binlake version that wrote it",
            table=config.name,
            path=PROPERTIES_PATH,
        ) from error


def _stated(timeline: Timeline) -> list[_Counts]:
    counts = []
    for write in timeline.completed():
        if write.action == REPLACE_COMMIT:
            text = timeline.commit_metadata(write).extra.get(BUCKETS_KEY)
            if text is not None:
                counts.append(_Counts(write.requested_time, _from_json(json.loads(text))))
    return counts


def _to_json(bucketing: Bucketing) -> dict[str, object]:
    if isinstance(bucketing, PartitionBuckets):
        return {"number": bucketing.default, "rules": [list(rule) for rule in bucketing.rules]}
    return {"number": bucketing.count("")}


def _from_json(said: Mapping[str, Any]) -> Bucketing:
    return bucketing_of(int(said["number"]), tuple((rule, int(count)) for rule, count in said.get("rules", ())))
