"""Reasons why a record cannot be applied: their codes, and the search for the reason in one bad record."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Set
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NoReturn

Buffer = bytes | memoryview


class Reason(StrEnum):
    """Stable codes of ``Quarantined.reason``."""

    MALFORMED_JSON = "malformed_json"
    INVALID_UTF8 = "invalid_utf8"
    DUPLICATE_KEY = "duplicate_key"
    NAN = "nan"
    TOO_LARGE = "too_large"
    TOO_DEEP = "too_deep"
    UNKNOWN_MESSAGE = "unknown_message"
    UNKNOWN_OP = "unknown_op"
    UNKNOWN_TABLE = "unknown_table"
    NO_SCHEMA = "no_schema"
    UNSUPPORTED_TYPE = "unsupported_type"
    RESERVED_COLUMN = "reserved_column"
    UNKNOWN_COLUMN = "unknown_column"
    MISSING_IMAGE = "missing_image"
    MISSING_KEY = "missing_key"
    NULL_KEY = "null_key"
    AMBIGUOUS_KEY = "ambiguous_key"
    BAD_VALUE = "bad_value"
    BAD_COMPUTED = "bad_computed"
    BAD_PARTITION = "bad_partition"
    IRREVOCABLE = "irrevocable"
    NO_INSERT = "no_insert"
    NO_POSITION = "no_position"
    ORDER_OUT_OF_RANGE = "order_out_of_range"
    UNKNOWN_SCHEMA_ID = "unknown_schema_id"
    MALFORMED_AVRO = "malformed_avro"


@dataclass(frozen=True, slots=True)
class Fault:
    """A reason and its detail; ``columns`` are the unknown columns."""

    reason: Reason
    detail: str
    columns: tuple[str, ...] = ()


class _FaultError(Exception):
    def __init__(self, fault: Fault) -> None:
        self.fault = fault
        super().__init__(fault.detail)


_MAX_DETAIL = 300
_SHALLOW = 16


def json_fault(text: Buffer, max_nesting: int) -> Fault | None:
    """The fault of a text as JSON; None if it has none.

    The check is stricter than JSON: duplicate keys, NaN, lone surrogates and nesting beyond ``max_nesting`` are faults.
    """
    try:
        decoded = bytes(text).decode("utf-8")
    except UnicodeDecodeError as error:
        return Fault(Reason.INVALID_UTF8, str(error)[:_MAX_DETAIL])
    if decoded.startswith("\ufeff"):
        return Fault(Reason.MALFORMED_JSON, "starts with a byte order mark")
    if _nesting(decoded, max_nesting) > max_nesting:
        return Fault(Reason.TOO_DEEP, f"nested deeper than {max_nesting}")
    try:
        value = json.loads(decoded, object_pairs_hook=_no_duplicates, parse_constant=_no_constants)
    except _FaultError as refused:
        return refused.fault
    except RecursionError:
        return Fault(Reason.TOO_DEEP, "nested deeper than the parser goes")
    except ValueError as error:
        return Fault(Reason.MALFORMED_JSON, str(error)[:_MAX_DETAIL])
    return _value_fault(value)


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for name, value in pairs:
        if name in members:
            raise _FaultError(Fault(Reason.DUPLICATE_KEY, f"key {name[:100]!r} occurs twice in one object"))
        members[name] = value
    return members


def _no_constants(name: str) -> NoReturn:
    raise _FaultError(Fault(Reason.NAN, f"{name} is not a JSON number"))


def _value_fault(value: object) -> Fault | None:
    """Faults that are visible in decoded values only: lone surrogates, numbers beyond a double."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            waiting += [*item.keys(), *item.values()]
        elif isinstance(item, list):
            waiting += item
        elif isinstance(item, str) and not _encodable(item):
            return Fault(Reason.INVALID_UTF8, "a lone surrogate, which UTF-8 cannot hold")
        elif isinstance(item, float) and math.isinf(item):
            return Fault(Reason.BAD_VALUE, "a number beyond the range of a double")
    return None


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _nesting(text: str, limit: int) -> int:
    """The deepest level of arrays and objects, without a parser's stack. It is an upper bound when small; counting
    stops just beyond ``limit``.
    """
    bound = text.count("[") + text.count("{")
    if bound <= _SHALLOW:
        return bound
    depth = deepest = 0
    quoted = escaped = False
    for character in text:
        if quoted:
            if escaped:
                escaped = False
            elif character == "\\":
                escaped = True
            elif character == '"':
                quoted = False
        elif character == '"':
            quoted = True
        elif character in "[{":
            depth += 1
            deepest = max(deepest, depth)
            if depth > limit:
                break
        elif character in "]}":
            depth -= 1
    return deepest


def row_fault(text: Buffer, names: Set[str], max_nesting: int) -> Fault | None:
    """The fault of one row image by itself: its JSON, its shape, or unknown columns."""
    fault = json_fault(text, max_nesting)
    if fault is not None:
        return fault
    row = json.loads(bytes(text))
    if not isinstance(row, dict):
        return Fault(Reason.MISSING_IMAGE, f"the row image is {type(row).__name__}, not an object")
    unknown = row.keys() - names
    return unknown_columns_fault(unknown) if unknown else None


def unknown_columns_fault(columns: Collection[str]) -> Fault:
    """The fault of a row with columns that its schema does not have."""
    listed = tuple(sorted(columns))
    return Fault(Reason.UNKNOWN_COLUMN, f"columns the schema does not know: {', '.join(listed)[:_MAX_DETAIL]}", listed)
