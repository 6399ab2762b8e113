"""The push to Glue, at moto's server over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto.server import ThreadedMotoServer
from typer.testing import CliRunner

from binlake.cli.app import app
from hudilake.errors import ConfigError, TransientError
from lakemetastore.catalog.catalog import Catalog
from lakemetastore.errors import NoSuchObjectError
from lakemetastore.glue import PUSHED, GluePush, Pushed
from lakemetastore.log.stores.opening import open_store
from lakemetastore.model import Column, Database, Partition, SerDe, Storage, Table

STORAGE = Storage(
    (Column("a", "int", "the key"), Column("b", "string")),
    "org.apache.hudi.hadoop.realtime.HoodieParquetRealtimeInputFormat",
    "org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat",
    serde=SerDe(None, "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe", {"path": "s3://lake/shop/t"}),
)
DAY = (Column("day", "string"),)


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def glue(endpoint: str) -> Any:  # noqa: ANN401 - boto3 makes its classes at run time
    found = client(endpoint)
    for database in found.get_databases()["DatabaseList"]:
        found.delete_database(Name=database["Name"])
    return found


def client(endpoint: str) -> Any:  # noqa: ANN401 - as above
    keys = {"aws_access_key_id": "x", "aws_secret_access_key": "x"}
    return boto3.client("glue", region_name="eu-central-1", endpoint_url=endpoint, **keys)


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    found = Catalog(open_store(str(tmp_path)))
    found.databases.create(Database("shop", "sales", "s3://lake/shop"))
    found.tables.create(table("t", STORAGE))
    return found


def table(name: str, storage: Storage) -> Table:
    parameters = {"EXTERNAL": "TRUE", "spark.sql.sources.provider": "hudi"}
    return Table("shop", name, storage, f"s3://lake/shop/{name}", DAY, parameters, kind="EXTERNAL_TABLE")


def days(count: int, start: int = 0) -> list[Partition]:
    return [Partition((f"d{n:04}",), STORAGE, f"s3://lake/shop/t/d{n:04}") for n in range(start, start + count)]


def there(glue: Any, name: str = "t") -> set[str]:  # noqa: ANN401 - as above
    pages = glue.get_paginator("get_partitions").paginate(DatabaseName="shop", TableName=name)
    return {partition["Values"][0] for page in pages for partition in page["Partitions"]}


def test_a_table_is_copied_with_its_partitions(catalog: Catalog, glue: Any) -> None:  # noqa: ANN401
    catalog.partitions.add_all("shop", "t", days(230))
    assert GluePush(catalog, glue).push("shop", "t") == Pushed("shop.t", "created", added=230)
    found = glue.get_table(DatabaseName="shop", Name="t")["Table"]
    assert found["Parameters"]["spark.sql.sources.provider"] == "hudi"
    assert found["StorageDescriptor"]["Columns"][0] == {"Name": "a", "Type": "int", "Comment": "the key"}
    assert found["StorageDescriptor"]["SerdeInfo"]["Parameters"] == {"path": "s3://lake/shop/t"}
    assert [key["Name"] for key in found["PartitionKeys"]] == ["day"]
    assert glue.get_database(Name="shop")["Database"]["LocationUri"] == "s3://lake/shop"
    assert len(there(glue)) == 230


def test_a_second_push_changes_only_what_changed(catalog: Catalog, glue: Any) -> None:  # noqa: ANN401
    catalog.partitions.add_all("shop", "t", days(40))
    push = GluePush(catalog, glue)
    push.push("shop", "t")
    assert push.push("shop", "t") == Pushed("shop.t", "unchanged")
    catalog.partitions.drop("shop", "t", [f"day=d{n:04}" for n in range(30)])
    catalog.partitions.add_all("shop", "t", days(5, 100))
    entry = catalog.tables.get("shop", "t")
    moved = Partition(("d0035",), STORAGE, "s3://lake/elsewhere")
    catalog.partitions.alter_all("shop", "t", [moved])
    catalog.tables.alter("shop", "t", table("t", Storage((Column("a", "bigint"),), STORAGE.input_format)))
    assert push.push("shop", "t") == Pushed("shop.t", "updated", added=5, altered=1, removed=30)
    found = glue.get_table(DatabaseName="shop", Name="t")["Table"]
    assert found["StorageDescriptor"]["Columns"] == [{"Name": "a", "Type": "bigint"}]
    assert found["Parameters"][PUSHED] == entry.id
    assert there(glue) == {f"d{n:04}" for n in (*range(30, 40), *range(100, 105))}


def test_a_table_that_was_not_pushed_is_left_alone(catalog: Catalog, glue: Any) -> None:  # noqa: ANN401
    glue.create_database(DatabaseInput={"Name": "shop"})
    glue.create_table(DatabaseName="shop", TableInput={"Name": "t", "Parameters": {"mine": "1"}})
    push = GluePush(catalog, glue)
    with pytest.raises(ConfigError, match="was not pushed from a metastore of binlake"):
        push.push("shop", "t")
    catalog.tables.drop("shop", "t")
    assert push.prune("shop") == []
    assert glue.get_table(DatabaseName="shop", Name="t")["Table"]["Parameters"] == {"mine": "1"}


def test_copies_of_tables_that_are_gone_or_renamed_are_pruned(catalog: Catalog, glue: Any) -> None:  # noqa: ANN401
    push = GluePush(catalog, glue)
    push.push("shop", "t")
    catalog.tables.rename("shop", "t", "shop", "u")
    push.push("shop", "u")
    assert push.prune("shop") == [Pushed("shop.t", "deleted")]
    assert [t["Name"] for t in glue.get_tables(DatabaseName="shop")["TableList"]] == ["u"]


def test_the_command_pushes_all_tables(
    catalog: Catalog,
    glue: Any,  # noqa: ANN401 - as above
    endpoint: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    catalog.partitions.add_all("shop", "t", days(2))
    conf = tmp_path / "metastore.yaml"
    conf.write_text(f"store: {{uri: {tmp_path}}}\n")
    words = ["metastore", "push", "glue", str(conf), "--region", "eu-central-1", "--endpoint-url", endpoint, "--prune"]
    done = CliRunner().invoke(app, words)
    assert (done.exit_code, "shop.t: created; 2 partitions added" in done.stdout) == (0, True), done.output
    glue.update_table(DatabaseName="shop", TableInput={"Name": "t"})  # somebody else's now
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 2
    assert "was not pushed from a metastore of binlake" in done.stderr


def test_what_goes_wrong_is_told(catalog: Catalog, glue: Any) -> None:  # noqa: ANN401
    with pytest.raises(NoSuchObjectError):
        GluePush(catalog, glue).push("shop", "none")
    with pytest.raises(TransientError, match="Glue gives no answer"):
        GluePush(catalog, client("http://127.0.0.1:1")).push("shop", "t")
