"""Wide rows of visible cells: those of the recordings, of random cells, and each policy."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from binlake.hbase.rules.wide import wide_rows, wide_schema
from binlake.hbase.settings.declared import WideColumn
from binlake.hbase.settings.rules import WideRule
from tests.binlake.hbase.recordings import TABLES, CellPlace, truth
from tests.binlake.hbase.rules.slow import cells_table, pivot, text_form

KEY = WideColumn("id", None, None, "utf8")
ORDERS = (
    KEY,
    WideColumn("user_id", "d", "user_id", "long"),
    WideColumn("status", "d", "status", "utf8"),
    WideColumn("amount", "d", "amount", "decimal", precision=12, scale=2),
    WideColumn("price", "d", "price", "double"),
    WideColumn("qty", "d", "qty", "int"),
    WideColumn("gift", "d", "gift", "boolean"),
    WideColumn("note", "d", "note", "utf8"),
    WideColumn("loc", "s", "loc", "utf8"),
    WideColumn("attributes", "m", None, "utf8", prefix=b"attr:"),
    WideColumn("others", "m", None, "bytes"),
    WideColumn("changed", None, None, "long", is_timestamp=True),
)
COLUMNS = {
    "shop:orders": ORDERS,
    "shop:quirks": (KEY, WideColumn("q", "v3", "q", "utf8"), WideColumn("nb", "nb", None, "utf8")),
    "shop:counters": (
        KEY,
        WideColumn("hits", "n", "hits", "long"),
        WideColumn("sum", "n", "sum", "long"),
        WideColumn("rest", "n", None, "utf8"),
    ),
    "shop:clicks": (
        WideColumn("id", None, None, "bytes"),
        WideColumn("last", "c", "last", "bytes"),
        WideColumn("every", "c", None, "bytes"),
    ),
}


def rule(*columns: WideColumn, **others: object) -> WideRule:
    return WideRule("shop.orders_cells", columns, **others)  # type: ignore[arg-type]


def cell(row: bytes, column: str, value: bytes, at: int = 1) -> tuple[CellPlace, bytes]:
    family, _, qualifier = column.partition(":")
    return CellPlace(row, family.encode(), qualifier.encode(), at), value


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("seed", [1, 2])
def test_the_final_scan_of_a_real_store_in_any_order_of_its_cells(table: str, seed: int) -> None:
    cells, columns = truth(table), COLUMNS[table]
    wanted = pivot(cells, columns)
    rows = pa.array(sorted({text_form(place.row) for place in cells}))

    made = wide_rows(cells_table(cells, seed), rows, rule(*columns))

    found = {key_bytes(row["id"]): row for row in made.upserts.to_pylist()}
    assert found == wanted.rows
    assert found
    assert len(made.gone) == 0
    assert made.upserts.schema == wide_schema(rule(*columns))
    places = zip(*(made.faults.column(name).to_pylist() for name in ("row", "family", "qualifier")), strict=True)
    assert set(places) == {(text_form(row), family.decode(), text_form(name)) for row, family, name in wanted.faults}


def key_bytes(key: str | bytes) -> bytes:
    return key.encode() if isinstance(key, str) else key


def test_every_typed_value_of_the_orders_decodes() -> None:
    cells = truth("shop:orders")
    rows = pa.array(sorted({text_form(place.row) for place in cells}))

    made = wide_rows(cells_table(cells), rows, rule(*ORDERS))

    assert made.faults.num_rows == 0
    assert made.upserts.num_rows == len(rows) > 250
    for name in ("user_id", "amount", "price", "qty", "gift", "status"):
        assert made.upserts.column(name).null_count < made.upserts.num_rows // 2, name


places = st.builds(
    CellPlace,
    st.binary(min_size=1, max_size=2),
    st.sampled_from([b"d", b"m"]),
    st.sampled_from([b"", b"q", b"attr:1", b"attr:2", b"at", b"__empty__", b"a,b", b"\xff"]),
    st.integers(0, 3),
)
STRANGE = (
    WideColumn("id", None, None, "bytes"),
    WideColumn("q", "d", "q", "short"),
    WideColumn("reserved", "d", "\\x5F_empty__", "utf8"),
    WideColumn("long", "m", None, "utf8", prefix=b"attr:"),
    WideColumn("short", "m", None, "short", prefix=b"at"),
    WideColumn("comma", "m", "a\\x2Cb", "utf8", as_text=True),
    WideColumn("all", "m", None, "int", as_text=True),
    WideColumn("stamp", None, None, "long", is_timestamp=True),
)


@given(st.dictionaries(places, st.sampled_from([b"", b"ab", b"12", b"\xff\xfe", b"0123", b"x"])))
def test_random_cells_as_the_reference(cells: dict[CellPlace, bytes]) -> None:
    wanted = pivot(cells, STRANGE)
    gone = b"never written"
    rows = pa.array([*sorted({text_form(place.row) for place in cells}), text_form(gone)])

    made = wide_rows(cells_table(cells), rows, rule(*STRANGE))

    assert {row["id"]: row for row in made.upserts.to_pylist()} == wanted.rows
    assert made.gone.to_pylist() == [gone]
    assert made.faults.num_rows == len(wanted.faults)
    made.upserts.validate(full=True)


def test_a_row_without_visible_cells_is_gone() -> None:
    cells = dict([cell(b"r1", "d:q", b"x")])

    made = wide_rows(cells_table(cells), pa.array(["r0", "r1", "r2"]), rule(KEY, WideColumn("q", "d", "q", "utf8")))

    assert made.gone.to_pylist() == ["r0", "r2"]
    assert made.upserts.to_pylist() == [{"id": "r1", "q": "x"}]


def test_a_row_of_undeclared_cells_is_a_row_with_its_key_alone() -> None:
    cells = dict([cell(b"r1", "d:other", b"x"), cell(b"r1", "e:q", b"y", at=7)])
    columns = (KEY, WideColumn("q", "d", "q", "utf8"))

    made = wide_rows(cells_table(cells), pa.array(["r1"]), rule(*columns))
    dropped = wide_rows(cells_table(cells), pa.array(["r1"]), rule(*columns, undeclared="drop"))

    assert made.upserts.to_pylist() == dropped.upserts.to_pylist() == [{"id": "r1", "q": None}]
    assert dropped.faults.num_rows == 0
    faults = sorted(made.faults.to_pylist(), key=lambda fault: fault["family"])
    assert [(f["family"], f["qualifier"], f["timestamp"], f["value"], f["reason"]) for f in faults] == [
        ("d", "other", 1, b"x", "unknown_column"),
        ("e", "q", 7, b"y", "unknown_column"),
    ]
    assert faults[0]["detail"] == "no column holds d:other"


def test_a_value_that_does_not_decode_is_null_alone() -> None:
    cells = dict([cell(b"r1", "d:n", b"abc", at=5), cell(b"r1", "d:n", b"\0\0\0\1", at=4), cell(b"r1", "d:q", b"fine")])
    columns = (KEY, WideColumn("n", "d", "n", "int"), WideColumn("q", "d", "q", "utf8"))

    made = wide_rows(cells_table(cells), pa.array(["r1"]), rule(*columns))

    assert made.upserts.to_pylist() == [{"id": "r1", "n": None, "q": "fine"}]
    (fault,) = made.faults.to_pylist()
    assert (fault["row"], fault["family"], fault["qualifier"], fault["timestamp"]) == ("r1", "d", "n", 5)
    assert (fault["value"], fault["reason"]) == (b"abc", "bad_value")
    assert fault["detail"] == "column n takes 4 bytes, a big-endian int; the value has 3 bytes"


def test_an_item_of_a_map_that_does_not_decode_is_null_in_the_map() -> None:
    cells = dict([cell(b"r1", "m:b", b"\0\0\0\1"), cell(b"r1", "m:a", b"?"), cell(b"r2", "d:x", b"1")])

    made = wide_rows(
        cells_table(cells), pa.array(["r1", "r2"]), rule(KEY, WideColumn("m", "m", None, "int"), undeclared="drop")
    )

    assert made.upserts.to_pylist() == [{"id": "r1", "m": [("a", None), ("b", 1)]}, {"id": "r2", "m": None}]
    assert made.faults.column("qualifier").to_pylist() == ["a"]


def test_a_row_whose_key_does_not_decode_is_in_no_wide_table() -> None:
    cells = dict([cell(b"\0\0\0\1", "d:q", b"x"), cell(b"bad key", "d:q", b"y"), cell(b"bad key", "d:other", b"y")])
    key = WideColumn("id", None, None, "int")
    rows = pa.array([text_form(data) for data in (b"bad key", b"\0\0\0\1", b"bad too", b"\0\0\0\2")])

    made = wide_rows(cells_table(cells), rows, rule(key, WideColumn("q", "d", "q", "utf8")))

    assert made.upserts.to_pylist() == [{"id": 1, "q": "x"}]
    assert made.gone.to_pylist() == [2]
    (fault,) = made.faults.to_pylist()
    assert (fault["row"], fault["family"], fault["value"]) == ("bad key", None, None)
    assert fault["detail"] == "column id takes 4 bytes, a big-endian int; the row is not in the wide table"


def test_cells_of_other_rows_are_refused() -> None:
    with pytest.raises(ValueError, match="not asked for"):
        wide_rows(cells_table(dict([cell(b"r1", "d:q", b"x")])), pa.array(["r2"]), rule(KEY))
    with pytest.raises(ValueError, match="asked for twice"):  # one of both would be gone
        wide_rows(cells_table(dict([cell(b"r1", "d:q", b"x")])), pa.array(["r1", "r1"]), rule(KEY))


def test_two_keys_of_the_store_are_never_one_row() -> None:
    stored = [b"7", b"007", b"+7", b"-0", b"0", b"-5"]
    cells = dict([cell(row, "d:q", row) for row in stored])
    key = WideColumn("id", None, None, "int", as_text=True)

    made = wide_rows(cells_table(cells), pa.array([text_form(row) for row in stored]), rule(key))

    assert made.upserts.column("id").to_pylist() == [7, 0, -5]
    lost = made.faults.filter(pc.is_null(made.faults.column("family")))
    assert lost.column("row").to_pylist() == ["007", "+7", "-0"]


def test_nothing_asked_for() -> None:
    made = wide_rows(cells_table({}), pa.array([], pa.string()), rule(*ORDERS))
    assert (made.upserts.num_rows, len(made.gone), made.faults.num_rows) == (0, 0, 0)
    assert made.upserts.schema == wide_schema(rule(*ORDERS))
