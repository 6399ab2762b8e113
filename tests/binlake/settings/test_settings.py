import json
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from binlake.settings import Settings, SettingsError, json_schema
from hudilake.errors import ConfigError
from tests.paths import CONF

MINIMAL = """
name: shop
lake: {uri: "file:///lake"}
kafka: {bootstrap_servers: "h:9092", topics: [a]}
"""
ENVIRON = {
    "LAKE_KEY_ID": "id-value",
    "SOURCE_PASSWORD": "source-value",
    "LAKE_SECRET": "lake-secret-value",
    "MASK_SALT": "mask-salt-value",
    "QUARANTINE_SECRET": "quarantine-secret-value",
    "KAFKA_PASSWORD": "kafka-secret-value",
    "BINLAKE_DEMO_BROKER": "127.0.0.1:9092",
    "BINLAKE_DEMO_DIR": "/demo",
    "BINLAKE_DEMO_PORT": "9400",
}


@dataclass(frozen=True)
class Name:
    database: str
    table: str


def mistakes(text: str, environ: dict[str, str] | None = None) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        Settings.parse(text, environ=environ or {})
    assert caught.value.exit_code == 2
    return [str(p) for p in caught.value.problems]


def test_the_least_that_is_needed() -> None:
    settings = Settings.parse(MINIMAL)
    assert settings.state_uri == "file:///lake/.binlake/shop"
    assert settings.quarantine_path == "_quarantine/shop"
    assert settings.kafka.client_properties() == {"bootstrap.servers": "h:9092"}
    rules = settings.table_rules(Name("shop", "orders"))
    assert (rules.path, rules.buckets, rules.key, rules.partition) == ("shop/orders", 8, None, None)


def test_every_mistake_is_reported_at_once_with_its_path_and_line() -> None:
    text = """
name: sh op
lake: {uri: "file:///lake", option: {}}
kafka:
  topics: [a]
  topic_pattern: "a("
  properties: {sasl.password: "${env:NOPE}", auto.offset.reset: x}
tables:
  path: "../{table}"
  defaults: {bucket: 3, buckets: true}
  overrides:
  - {match: "a.*"}
  - {match: "shop.orders", buckets: 0, key: id, compression: gzip}
batch: {max_events: 1}
batch: {max_events: 1.5}
source: {schemas: {"shop.orders": {columns: {id: int}, key: [idd]}}, epoch: 2048}
quarantine: {max_fraction: 1.5, path: "{nam}"}
spark: {conf: {executor.cores: 2}, driver_memory_mb: [1]}
"""
    assert mistakes(text) == [
        "name: must match ^[A-Za-z0-9_-]+$ (line 2)",
        "lake.option: unknown setting; did you mean options? (line 3)",
        "kafka.bootstrap_servers: is required (line 4)",
        "kafka.topic_pattern: is not a regular expression: missing ), unterminated subpattern (line 6)",
        'kafka.properties["sasl.password"]: environment variable NOPE is not set (line 7)',
        "kafka.properties: auto.offset.reset may not be set here: binlake sets it itself (line 7)",
        "tables.path: must be a relative path (line 9)",
        "tables.defaults.buckets: must be a number (line 10)",
        "tables.defaults.bucket: unknown setting; did you mean buckets? (line 10)",
        "tables.overrides[1].buckets: must be ≥ 1 (line 13)",
        "tables.overrides[1].key: must be a list (line 13)",
        "tables.overrides[1].compression: must be one of 'zstd', 'snappy' or 'none' (line 13)",
        "batch: is given twice (line 15)",
        "batch.max_events: must be a whole number (line 15)",
        "source.epoch: must be < 2048 (line 16)",
        'source.schemas["shop.orders"].key: no such column: idd (line 16)',
        "quarantine.path: may hold no placeholder but {name} (line 17)",
        "quarantine.max_fraction: must be ≤ 1.0 (line 17)",
        "spark.driver_memory_mb: must be a whole number (line 18)",
        "spark.conf: names must begin with spark.: executor.cores (line 18)",
    ]


@pytest.mark.parametrize("topics", ["", "topics: [a], topic_pattern: b,", "topics: [],"])
def test_exactly_one_of_topics_and_pattern(topics: str) -> None:
    text = f"name: a\nlake: {{uri: /x}}\nkafka: {{{topics} bootstrap_servers: 'h:1'}}"
    assert mistakes(text) == ["kafka.topic_pattern: exactly one of topics and topic_pattern must be given (line 3)"]


def test_the_kafka_mistake_does_not_hide_the_one_beside_it() -> None:
    found = mistakes("name: a\nlake: {uri: /x}\nkafka: {bootstrap_servers: 'h:1', fetch: slow}")
    assert [m.split(":")[0] for m in found] == ["kafka.topic_pattern", "kafka.fetch"]


@pytest.mark.parametrize(
    ("text", "path"), [("[]", "(whole file)"), ("", "name"), ("a", "(whole file)"), ("{name: 3}", "name")]
)
def test_a_file_of_another_shape(text: str, path: str) -> None:
    assert mistakes(text)[0].startswith(path)


@pytest.mark.parametrize(
    ("partition", "message"),
    [
        ("{column: a, transform: day, name: a}", "must be the column's own name"),
        ("{column: a, name: b}", "must be the column's own name"),
        ("{column: a, transform: week}", "must be one of"),
        ("{transform: day}", "is required"),
    ],
)
def test_wrong_partitions(partition: str, message: str) -> None:
    found = mistakes(MINIMAL + f"tables: {{defaults: {{partition: {partition}}}}}")
    assert len(found) == 1
    assert message in found[0]


def test_not_yaml_and_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is not YAML"):
        Settings.parse("a: [")
    with pytest.raises(ConfigError, match="cannot read the settings file"):
        Settings.load(tmp_path / "none.yaml")


def test_settings_cannot_be_changed() -> None:
    settings = Settings.parse(MINIMAL)
    with pytest.raises(ValueError, match="frozen"):
        settings.batch.max_events = 3


RULES = """
tables:
  path: "lake/{database}.{table}"
  include: ["shop.*", "bank.accounts"]
  exclude: ["*.tmp_*"]
  defaults: {buckets: 4, partition: {column: created, transform: month}, compression_level: 3}
  overrides:
  - {match: "shop.orders", buckets: 16, partition: {column: placed_at, transform: day, name: dt}, key: [id]}
  - {match: "shop.*", partition: null, immutable_partition: true, compression: snappy}
  - {match: "shop.orders", buckets: 99}
"""


def test_the_first_matching_override_replaces_what_it_gives() -> None:
    settings = Settings.parse(MINIMAL + RULES)
    orders = settings.table_rules(Name("shop", "orders"))
    assert (orders.path, orders.buckets, orders.key) == ("lake/shop.orders", 16, ("id",))
    assert orders.partition is not None
    assert (orders.partition.column, orders.partition.transform, orders.partition.field) == ("placed_at", "day", "dt")
    assert (orders.compression, orders.compression_level, orders.immutable_partition) == ("zstd", 3, False)
    stock = settings.table_rules(Name("shop", "stock"))
    assert (stock.buckets, stock.partition, stock.immutable_partition) == (4, None, True)
    assert stock.compression == "snappy"
    other = settings.table_rules(Name("bank", "accounts"))
    assert other.partition is not None
    assert other.partition.field == "created_month"


def test_rules_can_be_sent_to_a_task() -> None:
    rules = Settings.parse(MINIMAL + RULES).table_rules(Name("shop", "orders"))
    assert pickle.loads(pickle.dumps(rules)) == rules
    assert hash(rules) == hash(rules)


@pytest.mark.parametrize(
    ("database", "table", "taken"),
    [("shop", "orders", True), ("shop", "tmp_x", False), ("bank", "accounts", True), ("bank", "Accounts", False)],
)
def test_tables_are_taken_by_pattern(database: str, table: str, taken: bool) -> None:
    assert Settings.parse(MINIMAL + RULES).selects(Name(database, table)) is taken


@pytest.mark.parametrize(
    ("table", "path"),
    [
        ("line_item", "d/line_item"),
        ("Line Item", "d/Line@0020Item"),
        ("Line_Item", "d/Line_Item"),
        ("..", "d/@002e@002e"),
        ("a/b", "d/a@002fb"),
        ("a@002fb", "d/a@0040002fb"),
        ("表😀", "d/@8868@d83d@de00"),
        (".hoodie", "d/@002ehoodie"),
    ],
)
def test_paths_of_odd_names_neither_collide_nor_climb(table: str, path: str) -> None:
    assert Settings.parse(MINIMAL).table_rules(Name("d", table)).path == path


SECRETS = """
name: shop
lake:
  uri: "s3://${env:BUCKET}/lake"
  options: {aws_secret_access_key: "${env:SECRET}", region: eu, port: 9000, tls: true, passphrase: "written-here"}
kafka: {bootstrap_servers: "h:1", topics: [a], properties: {sasl.password: "pre-${env:SECRET}", client.id: me}}
spark: {conf: {spark.hadoop.x: "${env:SECRET}"}}
source: {database: {host: db, user: u, password: "${env:SECRET}"}}
batch: {max_events: "${env:COUNT}"}
"""
VALUES = {"SECRET": "tops3cret", "BUCKET": "hidden-bucket", "COUNT": "77"}


def test_secrets_reach_the_clients() -> None:
    settings = Settings.parse(SECRETS, environ=VALUES)
    assert settings.lake.uri == "s3://hidden-bucket/lake"
    assert settings.lake.storage_options() == {
        "aws_secret_access_key": "tops3cret",
        "region": "eu",
        "port": "9000",
        "tls": "true",
        "passphrase": "written-here",
    }
    assert settings.state_options() == settings.lake.storage_options()
    assert settings.kafka.client_properties()["sasl.password"] == "pre-tops3cret"
    assert settings.spark.properties() == {"spark.hadoop.x": "tops3cret"}
    assert settings.source.database.password is not None
    assert settings.source.database.password.get_secret_value() == "tops3cret"
    assert settings.batch.max_events == 77


def test_secrets_are_never_printed() -> None:
    settings = Settings.parse(SECRETS, environ=VALUES)
    shown = [yaml.safe_dump(settings.effective()), repr(settings), str(settings), settings.model_dump_json()]
    shown += [repr(settings.lake.options), repr(settings.kafka), repr(settings.spark), repr(settings.source)]
    assert not [t for t in shown if "tops3cret" in t or "written-here" in t]
    effective = settings.effective()
    assert effective["lake"]["uri"] == "s3://${env:BUCKET}/lake"
    assert effective["lake"]["options"]["region"] == "eu"
    assert effective["lake"]["options"]["aws_secret_access_key"] == "${env:SECRET}"
    assert effective["lake"]["options"]["passphrase"] == "**********"
    assert effective["kafka"]["properties"] == {"sasl.password": "pre-${env:SECRET}", "client.id": "me"}


def test_a_secret_in_the_wrong_place_is_not_quoted_by_the_error() -> None:
    text = MINIMAL + 'batch: {max_events: "${env:S}"}\nsource: {format: "${env:S}"}\ntables: {path: "${env:S}"}'
    text += '\nquarantine: {path: "{${env:S}}"}\nspark: {master: ["${env:S}"]}'
    found = mistakes(text, {"S": "tops3cret"})
    assert len(found) == 5
    assert "tops3cret" not in "".join(found)


def test_effective_settings_are_settings_again() -> None:
    settings = Settings.parse(MINIMAL + RULES)
    again = Settings.parse(yaml.safe_dump(settings.effective()))
    assert again.effective() == settings.effective()
    assert again.table_rules(Name("shop", "stock")) == settings.table_rules(Name("shop", "stock"))


def test_settings_survive_a_pickle_with_their_references() -> None:
    settings = Settings.parse(SECRETS, environ=VALUES)
    again = pickle.loads(pickle.dumps(settings))
    assert again.effective() == settings.effective()
    assert again.kafka.client_properties() == settings.kafka.client_properties()


#: Those of the metastore, and rules of Prometheus.
OTHERS = ("alerts.yaml", "metastore.yaml")
STREAMS = sorted(file for file in CONF.glob("*.yaml") if file.name not in OTHERS)


@pytest.mark.parametrize("file", STREAMS, ids=lambda p: p.name)
def test_examples_are_valid(file: Path) -> None:
    assert Settings.load(file, environ=ENVIRON).name


def test_the_reference_names_every_setting() -> None:
    written = yaml.safe_load((CONF / "reference.yaml").read_text())
    schema = json.loads(json_schema())
    assert _missing(schema, schema, written, "") == []


def _missing(schema: dict[str, Any], node: dict[str, Any], written: dict[str, Any], path: str) -> list[str]:
    node = schema["$defs"][node["$ref"].rsplit("/", 1)[-1]] if "$ref" in node else node
    found = []
    for name, child in node.get("properties", {}).items():
        if name not in written:
            found.append(f"{path}.{name}")
        elif isinstance(written[name], dict):
            found += _missing(schema, child, written[name], f"{path}.{name}")
    return found


def test_the_reference_shows_the_defaults() -> None:
    shown = Settings.load(CONF / "reference.yaml", environ=ENVIRON)
    plain = Settings.parse(MINIMAL)
    assert shown.tables.defaults == plain.tables.defaults
    assert (shown.batch, shown.spark) == (plain.batch, plain.spark)
    assert shown.quarantine.model_copy(update={"seal": None}) == plain.quarantine
    assert shown.source.debezium == plain.source.debezium


def test_the_json_schema_describes_every_setting() -> None:
    schema = json.loads(json_schema())
    assert schema["properties"]["batch"]["$ref"].endswith("BatchSettings")
    fields = [f for d in schema["$defs"].values() for f in d.get("properties", {}).items()]
    sections = {f"#/$defs/{name}" for name, d in schema["$defs"].items() if d["description"]}
    assert [n for n, f in fields if "description" not in f and f.get("$ref") not in sections] == []
    assert schema["$defs"]["TableSettings"]["properties"]["buckets"]["minimum"] == 1
