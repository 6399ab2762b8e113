"""The API as a whole: its description is complete, catalog, health and metrics, and random requests."""

from __future__ import annotations

import json
import random
import socket
import string
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest
import urllib3

from hudilake.storage import open_storage
from lakemetastore.api import paths
from lakemetastore.catalog.catalog import Catalog
from lakemetastore.http.app import create_app
from lakemetastore.http.hudi_view import BASE
from lakemetastore.log.stores.opening import open_store
from lakemetastore.model import Column, Database, Storage, Table
from lakemetastore.service.ports import listen
from tests.hudilake.read.lakes import new_table, row
from tests.hypothesis_profile import scaled
from tests.lakemetastore.http.asking import get
from tests.lakemetastore.http.served import serving

_TEXT = string.ascii_letters + string.digits + "'\"%/.:-_ \u00e9\U0001f600\x00"


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    """One lake table, t of shop."""
    table = new_table(tmp_path / "lake" / "t")
    table.write([row(key, 1) for key in range(9)])
    catalog = Catalog(open_store(str(tmp_path / "store")))
    catalog.databases.create(Database("shop"))
    storage = Storage(columns=(Column("id", "bigint"),))
    catalog.tables.create(Table("shop", "t", storage, table.storage.uri, parameters={"EXTERNAL": "TRUE"}))
    return catalog


@pytest.fixture
def address(tmp_path: Path, catalog: Catalog) -> Iterator[str]:
    with serving([open_storage(str(tmp_path / "lake"))], catalog=catalog) as found:
        yield found


def test_the_description_is_complete(catalog: Catalog) -> None:
    """Every path of ``api.paths`` is in it, each with a summary, the answer's fields, and its problems."""
    described = create_app(catalog, []).openapi()
    named = {value for name, value in vars(paths).items() if name.isupper()}
    hudis = {path for path in described["paths"] if path.startswith(BASE)}
    assert set(described["paths"]) - hudis == named
    assert f"{BASE}/slices/merged/beforeoron/latest/" in hudis
    for path, methods in described["paths"].items():
        for what in methods.values():
            assert what["description"], path
            if path.startswith("/v1") and path not in hudis:
                content = what["responses"]["200"]["content"]["application/json"]["schema"]
                assert "$ref" in content, path
                assert what["responses"]["404"]["content"]["application/json"]["schema"]["$ref"].endswith("/Problem")


def test_the_catalog_and_its_tables(address: str, tmp_path: Path) -> None:
    assert "shop" in get(address, paths.DATABASES)[1]["names"]
    assert get(address, paths.TABLES.format(database="shop"))[1] == {"names": ["t"], "after": None}
    status, missing = get(address, paths.TABLES.format(database="none"))
    assert (status, missing["error"]) == (404, "NoSuchObjectError")
    _, found = get(address, paths.DEFINITION.format(database="shop", table="T"))
    assert (found["kind"], found["columns"][0]["type"]) == ("EXTERNAL_TABLE", "bigint")
    assert get(address, paths.DEFINITION.format(database="shop", table="t"), at_least=found["version"])[1] == found
    assert get(address, paths.DEFINITION.format(database="shop", table="t"), at_least="x")[0] == 400
    assert get(address, paths.TABLE, table="shop.t")[1] == get(address, paths.TABLE, location=found["location"])[1]
    assert get(address, paths.TABLE, table="shop.none")[0] == 404


def test_health_and_metrics(address: str) -> None:
    assert get(address, paths.HEALTH) == (200, {"status": "ok"})
    get(address, paths.TABLE, table="shop.t")
    text = urllib3.request("GET", address + paths.METRICS).data.decode()
    assert 'binlake_metastore_http_requests_total{method="GET",route="/v1/lake/table",status="200"} 1.0' in text
    assert "binlake_metastore_open_tables 1.0" in text


def _junk(chance: random.Random) -> str:
    return "".join(chance.choices(_TEXT, k=chance.randint(0, 12)))


def _value(chance: random.Random, schema: dict[str, Any], whole: dict[str, Any], depth: int = 0) -> Any:  # noqa: ANN401
    """A value that the schema describes, or now and then another one."""
    if chance.random() < 0.1:
        return chance.choice([None, 7, -1, "x", [], {}, 1e300, True])
    if "$ref" in schema:
        return _value(chance, whole["components"]["schemas"][schema["$ref"].rpartition("/")[2]], whole, depth)
    for kind in ("anyOf", "oneOf"):
        if kind in schema:
            return _value(chance, chance.choice(schema[kind]), whole, depth)
    if "enum" in schema or "const" in schema:
        return chance.choice(schema.get("enum") or [schema["const"]])
    if schema.get("type") == "object":
        fields = schema.get("properties", {}).items()
        return {name: _value(chance, inner, whole, depth + 1) for name, inner in fields if chance.random() < 0.9}
    if schema.get("type") == "array":
        return [_value(chance, schema.get("items", {}), whole, depth + 1) for _ in range(0 if depth > 6 else 2)]
    plain = {"integer": chance.randint(-3, 99), "boolean": chance.random() < 0.5, "null": None}
    return plain.get(schema.get("type", ""), _junk(chance))


def _fields(chance: random.Random, what: dict[str, Any], whole: dict[str, Any]) -> list[tuple[str, str]]:
    """A query string; mostly of the one table."""
    named = [p for p in what.get("parameters", []) if p["in"] == "query" and p["name"] not in ("location", "wait_ms")]
    given = {p["name"]: str(_value(chance, p["schema"], whole)) for p in named}
    if "table" in given and chance.random() < 0.9:
        given["table"] = "shop.t"
    return list(given.items())


@pytest.mark.parametrize("seed", range(scaled(2)))
def test_no_request_is_a_defect(address: str, catalog: Catalog, seed: int) -> None:
    """Random requests by the description get an answer or a problem of the client, never a failure of the service."""
    chance = random.Random(seed)
    described = create_app(catalog, []).openapi()
    seen: set[int] = set()
    for _ in range(60):
        path = chance.choice(sorted(described["paths"]))
        method, what = chance.choice(sorted(described["paths"][path].items()))
        target = path.format(database=quote(chance.choice(["shop", _junk(chance)])), table=quote(_junk(chance)))
        query, body = urlencode(_fields(chance, what, described)), b""
        if "requestBody" in what:
            schema = what["requestBody"]["content"]["application/json"]["schema"]
            body = json.dumps(_value(chance, schema, described)).encode()
        url, headers = f"{address}{target}?{query}", {"Content-Type": "application/json"}
        answer = urllib3.request(method.upper(), url, body=body, headers=headers, retries=False)
        seen.add(answer.status)
        assert answer.status < 500, (method, target, query, body, answer.data)
    assert {200, 422} <= seen


def test_answers_do_not_wait_for_acknowledgements(tmp_path: Path) -> None:
    """The sockets that the service accepts send at once; asyncio alone would not see to it."""
    with listen("127.0.0.1", 0) as listener, socket.create_connection(listener.getsockname()):
        accepted, _ = listener.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
