"""The three ways in which rows are read: by templates, by the names of members, and by pyarrow's reader alone."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from binlake.decode.changes import DecodedRecords, RawRecords
from binlake.decode.formats.reader import decode
from binlake.decode.options import DecodeOptions
from binlake.decode.schemas.schemas import SchemaSource
from binlake.decode.templates import cells as objects
from binlake.decode.templates import reading


def by_name(found: RawRecords, schemas: SchemaSource, options: DecodeOptions) -> DecodedRecords:
    """As it is read without templates."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading.TemplatePass, "of", lambda *_: None)
        return decode(found, schemas, options)


def general(found: RawRecords, schemas: SchemaSource, options: DecodeOptions) -> DecodedRecords:
    """As pyarrow's reader alone reads it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(objects, "read_images", lambda *_: (np.empty(0, dtype=np.int64), []))
        return by_name(found, schemas, options)


def same(one: DecodedRecords, other: DecodedRecords) -> None:
    assert [r.offset for r in one.quarantined] == [r.offset for r in other.quarantined]
    assert one.quarantined == other.quarantined
    assert one.controls == other.controls
    assert (one.filtered, one.unknown_columns) == (other.filtered, other.unknown_columns)
    assert [batch.schema for batch in one.changes] == [batch.schema for batch in other.changes]
    for mine, theirs in zip(one.changes, other.changes, strict=True):
        mine.rows.validate(full=True)
        assert mine.rows.equals(theirs.rows)
        for column, general_s in zip(mine.rows.columns, theirs.rows.columns, strict=True):
            if pa.types.is_floating(column.type):
                assert str(column.to_pylist()) == str(general_s.to_pylist()), "zeros of both signs"
        assert (mine.before is None) == (theirs.before is None)
        assert mine.before is None or mine.before.equals(theirs.before)
        assert np.array_equal(mine.before_at, theirs.before_at)


def equal(found: RawRecords, schemas: SchemaSource, options: DecodeOptions) -> DecodedRecords:
    """What all three ways read."""
    whole = general(found, schemas, options)
    same(decode(found, schemas, options), whole)
    same(by_name(found, schemas, options), whole)
    return whole
