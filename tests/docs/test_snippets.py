"""YAML of the pages is read by the settings model, Python of the pages runs on the lake."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyspark.sql import SparkSession

from binlake.settings import Settings, SettingsError
from lakemetastore.settings.document import parse
from lakemetastore.settings.service import MetastoreSettings
from tests.docs.pages import Block, blocks
from tests.docs.shop import copied
from tests.paths import ROOT

TABLE = "/data/lake/shop/orders"
MINIMAL = yaml.safe_load((ROOT / "conf" / "minimal.yaml").read_text())


class AnyVariable(dict[str, str]):
    """An environment in which every variable is set."""

    def __contains__(self, name: object) -> bool:
        return True

    def __missing__(self, name: str) -> str:
        return "value"


def settings_of(text: str) -> Settings:
    """The settings of a snippet; what it does not give comes from the minimal settings, but Kafka's section where it
    names another source. Raises SettingsError."""
    assert parse(text, Path(), AnyVariable()).problems == []
    given = yaml.safe_load(text)
    whole = merged(MINIMAL, given)
    if "mysql" in given.get("source", {}):
        del whole["kafka"]
    return Settings.parse(yaml.safe_dump(whole), environ=AnyVariable())


def merged(whole: Mapping[str, Any], part: Mapping[str, Any]) -> dict[str, Any]:
    """``whole`` with what ``part`` gives; the two ways of naming topics exclude each other."""
    result = dict(whole)
    for name, value in part.items():
        known = result.get(name)
        result[name] = merged(known, value) if isinstance(value, dict) and isinstance(known, dict) else value
    if "topics" in part and "topic_pattern" not in part:
        result.pop("topic_pattern", None)
    return result


def metastore_settings_of(text: str) -> MetastoreSettings:
    """The same with the settings of a metastore."""
    assert parse(text, Path(), AnyVariable()).problems == []
    whole = merged({"store": {"uri": "/data/metastore"}}, yaml.safe_load(text))
    return MetastoreSettings.parse(yaml.safe_dump(whole), environ=AnyVariable())


@pytest.mark.parametrize("block", [b for b in blocks("yaml") if not b.page.name.startswith("metastore")], ids=str)
def test_settings_are_valid(block: Block) -> None:
    assert settings_of(block.text).name


@pytest.mark.parametrize("block", [b for b in blocks("yaml") if b.page.name.startswith("metastore")], ids=str)
def test_settings_of_a_metastore_are_valid(block: Block) -> None:
    assert metastore_settings_of(block.text).store.uri


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tables: {defaults: {bucket: 3}}", "unknown setting; did you mean buckets"),
        ("batch: {max_events: many}", "must be a whole number"),
        ("kafka: {topics: [a], topic_pattern: b}", "exactly one of"),
    ],
)
def test_control_wrong_settings_are_refused(text: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        settings_of(text)


def test_control_wrong_settings_of_a_metastore_are_refused() -> None:
    with pytest.raises(SettingsError, match="there is no backend lake"):
        metastore_settings_of("router: {primary: lake, backends: {old: {}}, rules: [{match: '*', to: old}]}")


def run(block: Block, shop: Path, **names: Any) -> None:  # noqa: ANN401 - whatever the block may use
    text = block.text.replace(TABLE, str(shop / "lake/shop/orders")).replace("shop.yaml", str(shop / "conf.yaml"))
    exec(compile(text, str(block), "exec"), dict(names))


#: Those of the pages on hudilake stand on tables of their own (``tests.hudilake.api``).
#: Those for Spark 4 run on its lines: tests/binlake/stream/spark/test_changes_source.py.
PYTHON = [b for b in blocks("python") if not b.mark.startswith("spark") and not b.page.name.startswith("python-")]
ON_SPARK = [block for block in blocks("python") if block.mark == "spark"]


@pytest.mark.parametrize("block", PYTHON, ids=str)
def test_python_runs(
    block: Block, shop: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")  # a block may make a table by a bare name
    run(block, copied(shop, tmp_path).parent if block.mark == "changes" else shop)
    assert capsys.readouterr().out.strip() not in ("", "0")


@pytest.mark.spark
@pytest.mark.parametrize("block", ON_SPARK, ids=str)
def test_python_runs_on_spark(
    block: Block, shop: Path, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    run(block, shop, spark=spark)
    assert capsys.readouterr().out.strip() == "2"


def test_control_a_wrong_snippet_fails(shop: Path) -> None:
    assert PYTHON
    assert ON_SPARK
    block = Block(ROOT / "README.md", 1, "python", "from hudilake.read import NoSuchReader\n")
    with pytest.raises(ImportError, match="NoSuchReader"):
        run(block, shop)
