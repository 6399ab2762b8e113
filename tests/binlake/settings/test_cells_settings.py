"""Tables of HBase-like stores in the settings: declarations of columns, names, and what such tables cannot have."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from binlake.decode.types.cell_text import bytes_of
from binlake.hbase.derive.pairs import fingerprint
from binlake.hbase.settings.declared import (
    DeclarationError,
    Storage,
    WideColumn,
    qualifier_bytes,
    text_form,
    wide_column,
)
from binlake.hbase.settings.families import FamilyRule
from binlake.hbase.settings.rules import CellsRule, WideRule
from binlake.settings import Settings
from binlake.settings.fanout import Destination
from binlake.settings.tables import TablesSettings
from hudilake.errors import ConfigError


def tables_of(**values: Any) -> TablesSettings:  # noqa: ANN401 - as YAML gives them
    """The section ``tables``."""
    return TablesSettings.model_validate(values)


COLUMNS = {"id": ":key", "qty": "d:qty#b int"}
STORE: dict[str, Any] = {"source": "shop.orders", "wide": {"columns": COLUMNS}}


@pytest.mark.parametrize(
    ("declared", "column"),
    [
        (":key", WideColumn("c", None, None, "utf8")),
        (":key#b long", WideColumn("c", None, None, "long")),
        (":key#string int", WideColumn("c", None, None, "int", as_text=True)),
        (":timestamp", WideColumn("c", None, None, "long", is_timestamp=True)),
        (":timestamp long", WideColumn("c", None, None, "long", is_timestamp=True)),
        ("d:name", WideColumn("c", "d", "name", "utf8")),
        ("d:name#- utf8", WideColumn("c", "d", "name", "utf8")),
        ("d:n#bin long", WideColumn("c", "d", "n", "long")),
        ("d:n#s long", WideColumn("c", "d", "n", "long", as_text=True)),
        (" d:n#b  decimal( 12 , 2 ) ", WideColumn("c", "d", "n", "decimal", precision=12, scale=2)),
        ("d:n#b decimal(5)", WideColumn("c", "d", "n", "decimal", precision=5)),
        ("d: bytes", WideColumn("c", "d", None, "bytes")),
        ("d:#s:b long", WideColumn("c", "d", None, "long")),
        ("d:#-:s long", WideColumn("c", "d", None, "long", as_text=True)),
        ("d:attr:.* utf8", WideColumn("c", "d", None, "utf8", prefix=b"attr:")),
        (r"d:\xff.* utf8", WideColumn("c", "d", None, "utf8", prefix=b"\xff")),
        ("d:a:b,c", WideColumn("c", "d", r"a:b\x2Cc", "utf8")),
        ("d:größe", WideColumn("c", "d", r"gr\xC3\xB6\xC3\x9Fe", "utf8")),
        (r"d:a\x20b\x23c\x2e\x2A", WideColumn("c", "d", "a b#c.*", "utf8")),
        (r"d:\xc3(", WideColumn("c", "d", r"\xC3(", "utf8")),
        ("d:__empty__", WideColumn("c", "d", r"\x5F_empty__", "utf8")),
    ],
)
def test_a_declaration_is_a_column(declared: str, column: WideColumn) -> None:
    assert wide_column("c", declared) == column


@pytest.mark.parametrize(
    ("declared", "why"),
    [
        ("qty", "must be a place"),
        ("", "must be a place"),
        ("d:a utf8 long", "must be a place"),
        (":row", "without a family are :key and :timestamp"),
        ("d:n#b bigint", "Hive's type of that name is long"),
        ("d:n#b LONG", "the type must be one of"),
        ("d:n long", "say #b"),
        ("d:n#- long", "say #b"),
        (":key int", "say #b"),
        ("d:n#x long", "behind # stands"),
        ("d:n# long", "behind # stands"),
        ("d:n#s:b long", "only a map"),
        ("d:#b:b long", "the keys of a map"),
        ("d:n#s bytes", "no text"),
        ("d:n#b long(3)", "only a decimal"),
        ("d:n#b decimal", "needs its digits"),
        ("d:n#b decimal(39,2)", "1 to 38 digits"),
        ("d:n#b decimal(0)", "1 to 38 digits"),
        ("d:n#b decimal(3,4)", "1 to 38 digits"),
        (":key#b double", "the row key must be one of"),
        (":key#b decimal(3,1)", "the row key must be one of"),
        (":key#b boolean", "the row key must be one of"),
        (":timestamp utf8", "is a long"),
        (":timestamp#b", "leave #b and #s out"),
        ("d:a\\b", "must begin"),
        (r"d:a\x4", "must begin"),
    ],
)
def test_declarations_with_mistakes(declared: str, why: str) -> None:
    with pytest.raises(DeclarationError, match=why):
        wide_column("c", declared)


@pytest.mark.parametrize(("default", "as_text"), [("binary", False), ("string", True)])
def test_the_default_of_the_table_holds_where_a_column_says_nothing(default: Storage, as_text: bool) -> None:
    assert wide_column("c", "d:n long", default).as_text is as_text
    assert wide_column("c", "d:n#- long", default).as_text is as_text
    assert wide_column("c", "d:n#b long", default).as_text is False
    assert wide_column("c", "d:n#s long", default).as_text is True
    assert wide_column("c", "d:n bytes", default).as_text is False


@given(st.binary())
def test_the_text_form_of_a_qualifier_is_one_of_its_spellings(data: bytes) -> None:
    text = text_form(data)
    assert qualifier_bytes(text) == data
    assert bytes_of(pa.array([text])).to_pylist() == [data]


@pytest.mark.parametrize(
    ("wide", "why"),
    [
        ({"columns": {}}, "at least 1 item"),
        ({"columns": {"qty": "d:qty#b int"}}, "exactly one column must be :key"),
        ({"columns": {"a": ":key", "b": ":key#b long"}}, "exactly one column must be :key"),
        ({"columns": {**COLUMNS, "QTY": "d:q#b int"}}, "columns qty and QTY are one name"),
        ({"columns": {**COLUMNS, "other": "d:qty"}}, "columns qty and other have one place"),
        ({"columns": {**COLUMNS, "other": r"d:\x71ty"}}, "columns qty and other have one place"),
        ({"columns": {**COLUMNS, "a": "m:", "b": "m:.* bytes"}}, "columns a and b have one place"),
        ({"columns": {**COLUMNS, "a": ":timestamp", "b": ":timestamp"}}, "columns a and b have one place"),
        ({"columns": {**COLUMNS, "_hoodie_x": "d:x"}}, "the lake's own"),
        ({"columns": {**COLUMNS, "_BINLAKE_x": "d:x"}}, "the lake's own"),
        ({"columns": {**COLUMNS, "1st": "d:x"}}, "no digit first"),
        ({"columns": {**COLUMNS, "a-b": "d:x"}}, "letters, digits and _"),
        ({"columns": COLUMNS, "undeclared": "ignore"}, "drop"),
        ({"columns": COLUMNS, "table": "shop.orders_cells"}, "have one name"),
        ({"columns": COLUMNS, "table": "Shop.Orders_Cells"}, "have one name"),
        ({"columns": COLUMNS, "table": "orders"}, r"must be database\.table"),
    ],
)
def test_wide_tables_with_mistakes(wide: dict[str, Any], why: str) -> None:
    tables_of(cells=[STORE])
    with pytest.raises(ValidationError, match=why):
        tables_of(cells=[{**STORE, "wide": wide}])


@pytest.mark.parametrize(
    ("families", "why"),
    [
        ({"D": {}}, "column qty is of family d, which families does not declare"),
        ({"d": {"versions": 2, "min_versions": 3}}, "min_versions must not be more than versions"),
        ({"d": {"versions": 0}}, "greater than or equal to 1"),
        ({"d": {"ttl": 5}}, "Extra inputs"),
    ],
)
def test_families_with_mistakes(families: dict[str, Any], why: str) -> None:
    tables_of(cells=[{**STORE, "families": {"d": {"versions": 3, "min_versions": 3}}}])
    with pytest.raises(ValidationError, match=why):
        tables_of(cells=[{**STORE, "families": families}])


@pytest.mark.parametrize("name", ["shop.orders", "shop.orders_cells"])
@pytest.mark.parametrize(
    ("rules", "why"),
    [
        ({"kind": "append"}, "cannot be of kind append"),
        ({"merge": {"engine": "first_row"}}, r"cannot have merge\.engine: first_row"),
        ({"index": {"type": "bloom"}}, r"cannot have index\.type: bloom"),
        ({"conflicts": "column"}, "cannot have conflicts: column"),
        ({"partition": {"column": "family"}}, "cannot be partitioned"),
        ({"key": ["id"]}, "leave key out"),
        ({"columns": {"mask": {"qty": {"how": "null"}}}}, "its columns are given"),
        ({"columns": {"computed": {"a": "1"}}}, "its columns are given"),
        ({"columns": {"exclude": ["qty"]}}, "its columns are given"),
    ],
)
def test_what_tables_of_stores_cannot_have(name: str, rules: dict[str, Any], why: str) -> None:
    what = "table of cells" if name.endswith("_cells") else "wide table"
    with pytest.raises(ValidationError, match=f"{what} {name}: .*{why}"):
        tables_of(cells=[STORE], overrides=[{"match": name, **rules}])


def test_what_they_can_have() -> None:
    tables = tables_of(
        cells=[STORE],
        defaults={"partition": {"column": "day"}},
        overrides=[{"match": "shop.orders*", "partition": None, "buckets": 4, "type": "copy_on_write"}],
    )
    cells, wide = tables.rules(Destination("shop", "orders_cells")), tables.rules(Destination("shop", "orders"))
    assert cells.cells is not None
    assert cells.cells.wide == "shop.orders"
    assert wide.wide is not None
    assert (wide.key, wide.buckets, wide.wide.cells) == (("id",), 4, "shop.orders_cells")


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ({"cells": [STORE, {"source": "shop.orders", "table": "a.b"}]}, r"two entries are of shop\.orders"),
        ({"cells": [STORE, {"source": "a.b", "table": "shop.Orders"}]}, "have one name"),
        (
            {
                "cells": [STORE],
                "stitched": [{"table": "shop.orders", "key": ["id"], "sources": [{"name": "a", "match": "a.b"}]}],
            },
            r"stitched table shop\.orders and the wide table of shop\.orders have one name",
        ),
    ],
)
def test_names_of_tables_are_taken_once(other: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        tables_of(**other)


def test_no_other_source_writes_into_a_stores_tables() -> None:
    store = {**STORE, "wide": {**STORE["wide"], "table": "lake.orders"}}
    tables = tables_of(cells=[store], routes=[{"match": r"crm\.orders", "to": "lake.orders"}])
    assert tables.destination(Destination("shop", "orders")) == Destination("shop", "orders_cells")
    assert tables.destination(Destination("shop", "customers")) == Destination("shop", "customers")
    for source in (Destination("lake", "orders"), Destination("shop", "orders_cells"), Destination("crm", "orders")):
        with pytest.raises(ConfigError, match=r"would be written into .*, a table of tables\.cells"):
            tables.destination(source)


def test_mistakes_have_their_lines() -> None:
    tables = {"cells": [{"source": "shop.orders", "wide": {"columns": {"id": ":key", "qty": "d:qty", "n": "d:n int"}}}]}
    document = {
        "name": "s",
        "lake": {"uri": "file:///lake"},
        "kafka": {"bootstrap_servers": "a:1", "topic_pattern": "x"},
        "tables": tables,
    }
    with pytest.raises(ConfigError, match=r"tables\.cells\[0\]\.wide\.columns\.n: say #b .*\(line 14\)"):
        Settings.parse(yaml.safe_dump(document, sort_keys=False))


def test_the_store_decides_what_deletes_mask_and_how_time_is_counted() -> None:
    families = {"d": {"versions": 2}}
    for store, by_sequence, ticks in (("hbase", False, 1), ("bigtable", True, 1000)):
        (settings,) = tables_of(cells=[{**STORE, "store": store, "families": families}]).cells
        rule = settings.cells_rule()
        assert rule.family("d") == FamilyRule("d", versions=2, by_sequence=by_sequence)
        assert rule.family("undeclared") == FamilyRule("undeclared", by_sequence=by_sequence)
        assert rule.ticks_per_ms == ticks


KEY = WideColumn("id", None, None, "utf8")
QTY = WideColumn("qty", "d", "qty", "int")
MAP = WideColumn("rest", "m", None, "utf8", prefix=b"\xff")
WIDE = WideRule("a.cells", (KEY, QTY, MAP))
CELLS = CellsRule((FamilyRule("d", versions=3), FamilyRule("m", ttl_ms=5)))


def test_what_counts_in_a_declaration() -> None:
    said = fingerprint(WIDE, CELLS)
    assert len(said) == 32
    same = [
        (replace(WIDE, columns=(KEY, MAP, QTY)), CELLS),
        (replace(WIDE, sweep_seconds=5, cells="b.cells"), CELLS),
        (WIDE, replace(CELLS, families=(*reversed(CELLS.families), FamilyRule("x")), lateness_ms=1, wide="b.wide")),
    ]
    assert {fingerprint(*one) for one in same} == {said}
    others = [
        (replace(WIDE, columns=(KEY, QTY)), CELLS),
        (replace(WIDE, columns=(KEY, replace(QTY, type="short"), MAP)), CELLS),
        (replace(WIDE, columns=(KEY, replace(QTY, as_text=True), MAP)), CELLS),
        (replace(WIDE, columns=(KEY, QTY, replace(MAP, prefix=b""))), CELLS),
        (replace(WIDE, undeclared="drop"), CELLS),
        (WIDE, replace(CELLS, families=CELLS.families[:1])),
        (WIDE, replace(CELLS, ticks_per_ms=1000)),
        (WIDE, replace(CELLS, by_sequence=True)),
    ]
    assert len({said, *(fingerprint(*one) for one in others)}) == len(others) + 1


def test_the_store_of_an_entry_is_that_of_the_format() -> None:
    """An entry for HBase would let Bigtable's deletes mask what was written after them."""
    document = {"name": "s", "lake": {"uri": "file:///lake"}, "kafka": {"bootstrap_servers": "b:1", "topics": ["t"]}}
    for form, store, fits in (
        ("bigtable", "bigtable", True),
        ("bigtable", "hbase", False),
        ("hbase_wal", "bigtable", False),
        ("hbase_avro", "hbase", True),
        ("auto", "bigtable", True),
    ):
        text = json.dumps(
            {**document, "source": {"format": form}, "tables": {"cells": [{"source": "a.b", "store": store}]}}
        )
        if fits:
            Settings.parse(text)
            continue
        with pytest.raises(ConfigError, match="say store: "):
            Settings.parse(text)
    with pytest.raises(ConfigError, match="must be 0: Bigtable's commit times"):
        Settings.parse(json.dumps({**document, "source": {"format": "bigtable", "epoch": 1}}))
