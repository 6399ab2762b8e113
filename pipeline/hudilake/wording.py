"""A number and its noun, for people: ``1 row``, ``2 rows``. It stands alone, since every package says such things."""

from __future__ import annotations


def counted(count: int, noun: str, verb: str = "", verb_of_many: str = "") -> str:
    """``1 table``, ``12,345 tables``, ``0 batches``; with verbs ``1 table has``, ``2 file groups have``."""
    words = (f"1 {noun}", verb) if count == 1 else (f"{count:,} {_plural(noun)}", verb_of_many)
    return " ".join(filter(None, words))


def _plural(noun: str) -> str:
    if noun.endswith(("ch", "sh", "s", "x")):
        return f"{noun}es"
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}s"
