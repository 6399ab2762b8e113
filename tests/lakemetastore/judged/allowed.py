"""Differences from a real metastore that are meant. ``docs/metastore-differences.md`` has a line for each of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from tests.lakemetastore.judged.calls import CLOSED, Call, Outcome
from tests.lakemetastore.judged.plain import Plain

#: Texts of calls on which a real metastore fails inside, rather than refuse: an exception of Java, or of its database.
FAULTS = re.compile(
    r"java\.(lang|util|net|io)\.|javax\.jdo|Add request failed : |Internal error processing|^JDO|Exception thrown "
)
_PARSING = "Error parsing partition filter"


@dataclass(frozen=True, slots=True)
class Allowed:
    """A difference that is meant: its name, as in the documentation, and when it is this one."""

    name: str
    allows: Callable[[Call, Outcome, Outcome], bool]


#: Answers without an order of their own: 3.1.3 gives them as its database does.
_UNORDERED = re.compile("get_(table_(meta|objects_by_name)|partition_names_ps|partitions_ps)")
#: What only Hive's own servers and shells ask.
_ABSENT = (
    "get_table_names_by_filter",
    "get_all_token_identifiers",
    "get_master_keys",
    "partition_name_has_valid_characters",
    "getOption",
)


def _fault(made: Call, wanted: Outcome, found: Outcome) -> bool:
    return wanted.error == CLOSED or (bool(FAULTS.search(wanted.text or "")) and found.error is not None)


def _parser_text(made: Call, wanted: Outcome, found: Outcome) -> bool:
    both = (wanted.text or "", found.text or "")
    return wanted.error == found.error and all(text.startswith(_PARSING) for text in both)


def _order(made: Call, wanted: Outcome, found: Outcome) -> bool:
    if not _UNORDERED.match(made.method) or wanted.error or found.error:
        return False
    mine, theirs = (_members(one.answer) for one in (found, wanted))
    limited = any(isinstance(one, int) and one >= 0 for one in made.arguments)
    return len(mine) == len(theirs) if limited else sorted(mine) == sorted(theirs)


def _members(answer: Plain) -> list[str]:
    """Members of a list, or of the one list of a structure, as texts."""
    if isinstance(answer, dict):
        answer = next((one for one in answer.values() if isinstance(one, list)), [])
    return [msgspec.json.encode(one).decode() for one in answer]


def _filter_with(pattern: str) -> Callable[[Call, Outcome, Outcome], bool]:
    wanted_text = re.compile(pattern)

    def allows(made: Call, wanted: Outcome, found: Outcome) -> bool:
        texts = [one for one in made.arguments[2:] if isinstance(one, str)]
        return "by_filter" in made.method and any(wanted_text.search(text) for text in texts)

    return allows


def _like_beside(made: Call, wanted: Outcome, found: Outcome) -> bool:
    """LIKE over a string key beside comparisons of other keys."""
    refusal = "Filtering is supported only on partition keys of type string"
    return wanted.text == refusal and found.error is None and _filter_with(r"(?i)\blike \"")(made, wanted, found)


def _prefix(made: Call, wanted: Outcome, found: Outcome) -> bool:
    """Each value is a pattern in a real metastore: ``.`` is any letter, and ``a`` in 4.0.1 begins ``ab``, too."""
    if "_ps" not in made.method or found.error or wanted.error:
        return False
    more = set(_members(wanted.answer)) > set(_members(found.answer))
    return more and ("." in str(made.arguments) or made.method.endswith("_req"))


def _limit(made: Call, wanted: Outcome, found: Outcome) -> bool:
    """3.1.3 answers all partitions if all values are empty, whatever the limit."""
    if made.method != "get_partitions_ps_with_auth" or any(made.arguments[2]) or wanted.error or found.error:
        return False
    mine, theirs = _members(found.answer), _members(wanted.answer)
    return len(mine) == made.arguments[3] and set(mine) <= set(theirs)


def _not_served(made: Call, wanted: Outcome, found: Outcome) -> bool:
    return made.method in _ABSENT


def _request_refused(made: Call, wanted: Outcome, found: Outcome) -> bool:
    """The refusals of 4.0.1 have other words, and in places other classes, than those of 3.1.3."""
    return made.method.endswith("_req") and None not in (wanted.error, found.error)


def _longer_name(made: Call, wanted: Outcome, found: Outcome) -> bool:
    """``hive.db.t table not found`` in place of another sentence that says the same."""
    return wanted.error == found.error and bool(
        re.fullmatch(r"Specified catalog\.database\.table does not exist : .*", wanted.text or "")
    )


ALLOWED = (
    Allowed("faults", _fault),
    Allowed("words of the parser", _parser_text),
    Allowed("order without a rule", _order),
    Allowed("values that are patterns", _prefix),
    Allowed("a limit that is not kept", _limit),
    Allowed("LIKE in both dialects", _filter_with(r"(?i)like \"[^\"]*[%_]")),
    Allowed("LIKE beside numbers and dates", _like_beside),
    Allowed("IN without parentheses", _filter_with(r"(?i)(^|\s)\w+ (not )?in \(")),
    Allowed("text after a condition", _filter_with(r"^[^(]* = \"a\"(\)| x)$")),
    Allowed("DATE before a date", _filter_with(r"DATE \d")),
    Allowed("calls that are not served", _not_served),
    Allowed("refusals of 4.0.1", _request_refused),
    Allowed("words for an unknown table", _longer_name),
)
