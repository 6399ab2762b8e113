"""``python -m tests.binlake.stream.watched_run CONF SHOWN``: a stream, and all that Spark shows of it while it runs."""

from __future__ import annotations

import json
import os
import re
import stat
import sys
import urllib.request
from pathlib import Path

from pyspark.sql import SparkSession

from binlake.settings import Settings
from binlake.stream.monitoring.progress import ProgressEvent
from binlake.stream.start import run_stream

PAGES = ["jobs/", "stages/", "environment/", "executors/", "SQL/", "StreamingQuery/", "SQL/execution/?id=0"]
PAGES += ["SQL/execution/?id=1", "jobs/job/?id=0", "stages/stage/?id=0&attempt=0"]
ANSWERS = ["environment", "jobs", "stages", "sql?details=true&planDescription=true&length=1000"]


def keep_pages(url: str, application: str, place: Path) -> None:
    """Every page and answer of Spark's UI, as a file each."""
    place.mkdir(parents=True, exist_ok=True)
    for page in [*PAGES, *(f"api/v1/applications/{application}/{answer}" for answer in ANSWERS)]:
        with urllib.request.urlopen(f"{url}/{page}", timeout=30) as got:
            (place / re.sub(r"\W+", "_", page)).write_bytes(got.read())


def readable_with(secrets: list[bytes], place: Path) -> list[str]:
    """Files below ``place`` that hold a secret and that other users of the machine could read."""
    found = []
    for file in place.rglob("*"):
        try:
            open_way = all(p.stat().st_mode & stat.S_IXOTH for p in file.parents if place in p.parents)
            if file.is_file() and open_way and file.stat().st_mode & stat.S_IROTH:
                content = file.read_bytes()
                found += [str(file)] if any(s in content for s in secrets) else []
        except FileNotFoundError:
            continue
    return found


def main(conf: str, shown: str) -> None:
    """Run all there is, and look around after every batch and at the plans."""
    settings, place = Settings.load(conf), Path(shown)
    readable: list[str] = []
    held = [os.environ[name] for name in ("THE_PASSWORD", "THE_KEY_PASSWORD")]
    secrets = [form.encode() for text in held for form in (text, json.dumps(text)[1:-1])]

    def look(event: ProgressEvent) -> None:
        spark = SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()
        context = spark.sparkContext
        assert context.uiWebUrl is not None
        keep_pages(context.uiWebUrl, context.applicationId, place / "ui")
        for query in spark.streams.active:
            (place / "query").write_text(str(query.lastProgress) + str(query.status))
            (place / "explained").write_text(query._jsq.explainInternal(True))
        readable.extend(readable_with(secrets, Path(os.environ["TMPDIR"])))

    run_stream(settings, once=True, on_progress=look)
    (place / "effective").write_text(json.dumps(settings.effective()) + repr(settings) + str(settings.kafka))
    (place / "readable").write_text("\n".join(readable))


if __name__ == "__main__":
    main(*sys.argv[1:])
