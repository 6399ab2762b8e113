"""Digests of rows and their sums: one value for one row in every width and file, another for any other row."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudilake.errors import UnsupportedError
from hudilake.format.digest.content_sum import NOTHING, ContentSum, total
from hudilake.format.digest.rows import kinds, row_digests
from hudilake.format.files.parquet_file import decode_parquet, encode_parquet

#: Type -> values that all differ, null among them.
VALUES: dict[pa.DataType, list[Any]] = {
    pa.int32(): [0, 1, -1, 2**31 - 1, None],
    pa.int64(): [0, 1, -1, 2**63 - 1, None],
    pa.bool_(): [True, False, None],
    pa.float32(): [0.0, -0.0, 1.5, float("inf"), None],
    pa.float64(): [0.0, -0.0, 0.1, 0.1 + 0.2, None],
    pa.string(): ["", "a", "a ", "A", "abcdefgh", "abcdefghi", "hgfedcba", "\x00", None],
    pa.binary(): [b"", b"\x00", b"\x00\x00", b"x" * 16, b"x" * 17, None],
    pa.binary(3): [b"abc", b"cba", None],
    pa.decimal128(20, 2): [Decimal("1.00"), Decimal("-1.00"), Decimal("0.01"), Decimal(10**17), None],
    pa.date32(): [date(1970, 1, 1), date(1582, 10, 15), None],
    pa.time64("us"): [time(0, 0), time(0, 0, 0, 1), None],
    pa.timestamp("us", tz="UTC"): [datetime(2024, 2, 29, tzinfo=UTC), datetime(1900, 1, 1, tzinfo=UTC), None],
    pa.list_(pa.int64()): [[], [1, 2], [2, 1], [1], [None], [1, None], None],
    pa.struct([("a", pa.int32()), ("b", pa.string())]): [{"a": 1, "b": "2"}, {"a": None, "b": None}, {"a": 2}, None],
    pa.map_(pa.string(), pa.int64()): [[], [("k", 1)], [("k", 2)], [("k", None)], [("l", 1)], None],
    pa.list_(pa.struct([("x", pa.list_(pa.int8()))])): [[{"x": [1]}], [{"x": [1]}, {"x": []}], [{"x": None}], None],
}


def of_cells(values: list[Any], kind: pa.DataType) -> list[tuple[int, int]]:
    digests = row_digests({"c": pa.array(values, kind)}, len(values))
    return list(zip(digests.low.tolist(), digests.high.tolist(), strict=True))


@pytest.mark.parametrize("kind", VALUES, ids=str)
def test_values_that_differ_have_other_digests_and_slices_and_files_the_same(kind: pa.DataType) -> None:
    values = VALUES[kind]
    whole = of_cells(values, kind)
    assert len(set(whole)) == len(values)
    assert {low for low, _ in whole}.isdisjoint(high for _, high in whole)
    table = pa.table({"_hoodie_record_key": list(map(str, range(len(values)))), "c": pa.array(values, kind)})
    stored = decode_parquet(encode_parquet(table, "zstd", 1), None, "")
    assert ContentSum.of_rows(stored) == ContentSum.of_rows(table)
    sliced = row_digests({"c": pa.array([*values, *values], kind)[1 : len(values) + 1]}, len(values))
    assert sliced.low.tolist() == [low for low, _ in [*whole[1:], whole[0]]]
    chunks = pa.chunked_array([pa.array(values[:1], kind), pa.array(values[1:], kind)])
    assert row_digests({"c": chunks}, len(values)).high.tolist() == [high for _, high in whole]


def test_longer_numbers_and_new_columns_without_values_change_nothing() -> None:
    short = pa.table({"a": pa.array([1, None], pa.int32()), "f": pa.array([1.5, 2], pa.float32())})
    longer = pa.table({"f": pa.array([1.5, 2]), "a": pa.array([1, None]), "new": pa.nulls(2, pa.string())})
    assert ContentSum.of_rows(short) == ContentSum.of_rows(longer)
    assert kinds(short.schema).items() <= kinds(longer.schema).items()
    assert kinds(pa.schema({"a": pa.string()})) != kinds(pa.schema({"a": pa.int32()}))
    assert kinds(pa.schema({"d": pa.decimal128(9, 2)})) != kinds(pa.schema({"d": pa.decimal128(9, 3)}))
    coded = pa.table({"a": pa.array(["x", "y", "x"]).dictionary_encode()})
    assert ContentSum.of_rows(coded) == ContentSum.of_rows(pa.table({"a": ["x", "y", "x"]}))


def test_columns_are_not_taken_for_each_other() -> None:
    one, other = pa.table({"a": ["x"], "b": ["y"]}), pa.table({"a": ["y"], "b": ["x"]})
    assert ContentSum.of_rows(one) != ContentSum.of_rows(other)
    assert ContentSum.of_rows(one) != ContentSum.of_partials(one)
    assert ContentSum.of_partials(one) != ContentSum.of_partials(one.append_column("c", pa.nulls(1, pa.string())))
    keys, orders = pa.array(["1"]), pa.array([5])
    deletes = [ContentSum.of_deletes(keys, given) for given in (orders, None, pa.array([6]))]
    assert len({*deletes, ContentSum.of_rows(pa.table({"_hoodie_record_key": keys}))}) == 4


@given(st.lists(st.tuples(st.integers(0, 5), st.text(max_size=3)), max_size=30), st.randoms(use_true_random=False))
def test_sums_do_not_depend_on_the_order_and_add_up(rows: list[tuple[int, str]], random: Any) -> None:  # noqa: ANN401
    def table(members: list[tuple[int, str]]) -> pa.Table:
        ids, texts = [i for i, _ in members], [text for _, text in members]
        return pa.table({"id": pa.array(ids, pa.int64()), "v": pa.array(texts, pa.string())})

    mixed = random.sample(rows, len(rows))
    whole, cut = ContentSum.of_rows(table(rows)), random.randint(0, len(rows))
    parts = [ContentSum.of_rows(table(mixed[:cut])), ContentSum.of_rows(table(mixed[cut:]))]
    assert total(parts) == whole
    assert whole - parts[0] == parts[1]
    assert ContentSum.parse(str(whole)) == whole
    places = np.array(sorted(random.sample(range(len(rows)), cut)), dtype=np.int64)
    assert ContentSum.of_some(table(rows), places) == ContentSum.of_rows(table([rows[i] for i in places]))


def test_values_swapped_between_rows_change_the_sum() -> None:
    one = pa.table({"id": [1, 2], "v": ["a", "b"], "w": ["c", "d"]})
    other = pa.table({"id": [1, 2], "v": ["b", "a"], "w": ["c", "d"]})
    assert ContentSum.of_rows(one) != ContentSum.of_rows(other)


@pytest.mark.parametrize("text", ["", "1", "1-", "-" + "0" * 32, "1-" + "g" * 32, "x-" + "0" * 32])
def test_a_text_that_is_no_sum_is_an_error(text: str) -> None:
    with pytest.raises(ValueError):
        ContentSum.parse(text)


def test_a_type_that_no_table_has_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="no digest"):
        row_digests({"c": pa.array([1], pa.duration("s"))}, 1)
    assert ContentSum.of_rows(pa.table({"c": pa.array([], pa.int64())})) == NOTHING
