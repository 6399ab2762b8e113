"""Spark's classes come from an archive that is made once."""

from __future__ import annotations

import logging
import os
import subprocess
from pathlib import Path

import pytest

from binlake.stream.spark import class_archive
from binlake.stream.spark.class_archive import archive_options, make_archive
from binlake.stream.spark.jars import pyspark_jars
from binlake.stream.spark.java import java_environment


@pytest.fixture(autouse=True)
def _empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BINLAKE_CACHE", str(tmp_path / "cache"))


@pytest.mark.full
@pytest.mark.spark
@pytest.mark.lines
def test_a_jvm_takes_the_classes_of_spark_from_the_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert archive_options() == ""
    make_archive()
    monkeypatch.setattr(class_archive, "_make", None)
    make_archive()  # it is there
    log, spark = tmp_path / "classes.log", pyspark_jars().parent  # Spark's own script knows its class path
    options = f"{archive_options()} -Xlog:class+load:file={log}"
    command = [str(spark / "bin" / "spark-submit"), "--driver-java-options", options, "--version"]
    environment = {**os.environ, **java_environment(), "SPARK_HOME": str(spark)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == ""
    loaded = [line.partition(" source: ") for line in log.read_text().splitlines() if " org.apache.spark." in line]
    sources = [source for name, _, source in loaded if "$Lambda$" not in name]  # a lambda is made from an archived form
    assert sources.count("shared objects file (top)") > 0.9 * len(sources) > 0


def test_spark_starts_without_an_archive_that_cannot_be_made(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(class_archive, "_TIMEOUT_S", 0.01)
    with caplog.at_level(logging.WARNING, "binlake"):
        make_archive()
        make_archive()
    assert ["could not be prepared" in record.message for record in caplog.records] == [True]
    assert archive_options() == ""
