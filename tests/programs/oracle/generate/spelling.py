"""The same statement in the spellings that people and tools use: comments, versioned comments, blanks.

Debezium skips versioned comments, so one around a verb or a column ends its connector; these are left out. Around
partitions, options and defaults they are what MySQL's own tools write.
"""

from __future__ import annotations

import random
import re

_HEAD = re.compile(r"\s*(ALTER TABLE|CREATE TABLE|DROP TABLE|RENAME TABLE|TRUNCATE TABLE)\b")
_PARTS = re.compile(r"(DEFAULT CHARSET=\w+|PARTITION BY .*|DEFAULT (?:-?\d+|'[^']*')|COMMENT '(?:[^']|'')*')$")
_SHARE = 0.35


def respelled(draw: random.Random, statement: str) -> str:
    """The statement, for the server the same."""
    head = _HEAD.match(statement)
    if not head or draw.random() > _SHARE:
        return statement
    part = _PARTS.search(statement)
    if part and draw.random() < 0.5:
        comment = draw.choice(("/*!50100 {} */", "/*M!100100 {} */", "/*! {} */"))
        return statement[: part.start()] + comment.format(part[0])
    return _with_remarks(draw, head[1], statement[head.end() :])


def _with_remarks(draw: random.Random, head: str, rest: str) -> str:
    verb, noun = head.split(" ")
    return draw.choice(
        (
            f"/* ticket 4711; DROP TABLE x */ {head}{rest}",
            f"{verb} /* by hand */ {noun}{rest} /* the end */",
            f"-- a remark\n{head}{rest}",
            f"{verb.lower()}\n\t{noun.lower()}{rest}",
            f"{head}{rest} /*!999999 unknown to it */",
            f"# a remark\n{head}{rest}",
        )
    )
