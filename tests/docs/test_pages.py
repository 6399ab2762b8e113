"""What pages name exists: files, links, make targets, settings, classes, metrics, log events; the site builds."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import pytest

from binlake.cli.logs import json_log
from binlake.decode.quarantine import Reason
from binlake.stream.monitoring.monitor import Monitor
from binlake.stream.monitoring.progress import DdlProgress, ProgressEvent, TableProgress
from binlake.stream.monitoring.run_log import RunLog
from docs import settings_reference
from docs.settings_reference import Reference
from hudilake import errors
from tests.docs.pages import DOCS, blocks, inline_code, links, pages
from tests.paths import ROOT

REFERENCES = (settings_reference.STREAM, settings_reference.METASTORE)
EVERY_REFERENCE = pytest.mark.parametrize("reference", REFERENCES, ids=lambda reference: reference.example.name)
_FILE = re.compile(r"(?<![\w./])(?:pipeline|tests|docs|conf|docker|jobs|bench|\.ci)/[\w./-]*\w")
_SETTING = re.compile(
    r"(?:lake|state|kafka|source|tables|locking|batch|quarantine|dump|monitoring|metastore|store|thrift|http)"
    r"(?:\.[a-z_]+)+"
)
_CLASS = re.compile(r"[A-Z][a-z]+(?:[A-Z][a-z]+)*")
_MAKE = re.compile(r"\bmake ([a-z][a-z0-9-]*)")
#: Keys of the commits' extra metadata and other names with a dot that are no settings.
_NOT_OURS = {"source.ts_ms"}


def shell() -> str:
    return "\n".join(block.text for block in blocks("sh"))


def files(text: str) -> set[str]:
    """Paths in the text that look like those of the checkout."""
    return set(_FILE.findall(text))


def test_named_files_exist() -> None:
    codes = [(page, code) for page in pages() for code in inline_code(page) if "://" not in code]
    named = {(page.name, path) for page, code in codes for path in files(code)}
    assert len(named) > 100
    assert {(page, path) for page, path in named if not (ROOT / path).exists()} == set()


def test_files_in_commands_exist() -> None:
    local = {path for path in files(shell()) if f"/{path}" not in shell()}
    assert "docker/compose.yaml" in local
    assert {path for path in local if not (ROOT / path).exists()} == set()


def test_links_lead_somewhere() -> None:
    targets = [(page, target) for page in pages() for target in links(page)]
    assert len(targets) > 100
    assert [(page.name, target) for page, target in targets if not (page.parent / target).exists()] == []


def test_control_paths_are_found() -> None:
    assert files("see `tests/none/test_nothing.py`, local:///opt/x/jobs/a.py") == {"tests/none/test_nothing.py"}


def test_make_targets_exist() -> None:
    targets = set(re.findall(r"^([a-z][a-z0-9-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    code = [*(code for page in pages() for code in inline_code(page)), shell()]
    named = {target for text in code for target in _MAKE.findall(text)}
    assert {"demo", "test", "docs"} <= named
    assert named <= targets


def test_named_settings_exist() -> None:
    named = [(page.name, name) for page in pages() for name in settings_in(inline_code(page))]
    assert len(named) > 100
    assert [(page, name) for page, name in named if name not in known_settings()] == []


def settings_in(codes: list[str]) -> list[str]:
    found = (_SETTING.match(code) for code in codes if "/" not in code)
    return [match[0] for match in found if match is not None and match[0] not in _NOT_OURS]


@lru_cache(maxsize=1)
def known_settings() -> set[str]:
    """Of a stream and of a metastore."""
    schemas = [settings_reference.SettingsSchema(reference.model) for reference in REFERENCES]
    return {path.replace("[]", "") for schema in schemas for path in schema.descriptions()}


def test_control_unknown_settings_are_found() -> None:
    assert settings_in(["batch.max_event", "quarantine.seal: x"]) == ["batch.max_event", "quarantine.seal"]
    assert "batch.max_event" not in known_settings()


def test_named_classes_exist() -> None:
    source = "\n".join(file.read_text() for file in (ROOT / "pipeline").rglob("*.py"))
    classes = set(re.findall(r"^class (\w+)", source, re.MULTILINE))
    read = [DOCS / "design.md", *DOCS.glob("runbooks/*.md")]
    named = {(page.name, code) for page in read for code in inline_code(page) if _CLASS.fullmatch(code)}
    assert len(named) > 10
    assert {(page, name) for page, name in named if name not in classes} == set()


# -- what is generated, and what must be complete ---------------------------------------------------------------------


@EVERY_REFERENCE
def test_the_page_of_all_settings_is_current(reference: Reference) -> None:
    assert reference.page.read_text() == settings_reference.page(reference), "run make docs"


@EVERY_REFERENCE
def test_the_comments_of_the_example_are_current(reference: Reference) -> None:
    text = reference.example.read_text()
    assert text == settings_reference.commented(reference, text), "run make docs"
    stale = text.replace("# Where ", "# What ").replace("# What to read.", "# Something else.")
    assert stale != settings_reference.commented(reference, stale)


@EVERY_REFERENCE
def test_every_setting_is_described(reference: Reference) -> None:
    descriptions = settings_reference.SettingsSchema(reference.model).descriptions()
    assert set(reference.model.model_fields) <= set(descriptions)
    assert [path for path, text in descriptions.items() if not text] == []


def error_classes() -> Iterator[type[errors.LakeError]]:
    for value in vars(errors).values():
        if isinstance(value, type) and issubclass(value, errors.LakeError) and value is not errors.LakeError:
            yield value


@pytest.mark.parametrize("kind", error_classes(), ids=lambda kind: kind.__name__)
def test_every_error_class_has_a_runbook(kind: type[errors.LakeError]) -> None:
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", kind.__name__).lower()
    text = (DOCS / "runbooks" / f"{name}.md").read_text()
    assert text.startswith(f"# {kind.__name__}: exit code {kind.exit_code}\n")
    assert "## Causes" in text or text.count("\n## ") > 1
    row = f"| {kind.exit_code} | [{kind.__name__}]({name}.md) |"
    assert row in (DOCS / "runbooks" / "index.md").read_text()


def test_quoted_messages_are_those_of_the_code() -> None:
    quoted = [(page.name, code) for page in DOCS.glob("runbooks/*-error.md") for code in quoted_on(page)]
    assert [(page, code) for page, code in quoted if not said(code)] == []


def quoted_on(page: Path) -> list[str]:
    """Code with a space in it that is neither a command nor a setting."""
    sentences = [code for code in inline_code(page) if " " in code and not code.startswith(("binlake ", "--"))]
    return [code for code in sentences if not _SETTING.match(code)]


def said(code: str) -> bool:
    """Whether the code says so; ``...`` stands for what a message fills in."""
    pieces = [piece.strip() for piece in code.split("...")]
    return all(any(piece in text for text in texts()) for piece in pieces)


@lru_cache(maxsize=1)
def texts() -> list[str]:
    """All texts in the code; of a message with values in it, each part."""
    found: list[str] = []
    for file in (ROOT / "pipeline").rglob("*.py"):
        nodes = ast.walk(ast.parse(file.read_text()))
        found += [n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    return found


def test_control_a_message_of_nobody_is_found() -> None:
    assert sum(len(quoted_on(page)) for page in DOCS.glob("runbooks/*-error.md")) > 40
    assert not said("the table is ... on holiday")


def test_every_reason_of_the_quarantine_is_explained() -> None:
    text = (DOCS / "operations.md").read_text()
    assert [reason for reason in (*Reason, "ddl_refused", "table_refused") if f"`{reason}`" not in text] == []


def test_every_metric_is_on_the_page() -> None:
    monitor = Monitor(1.0)
    monitor.metrics.kafka_answers(True)  # the metric appears once Kafka was asked
    told = set(re.findall(r"^# HELP (\w+)", monitor.render(), re.MULTILINE))
    listed = set(re.findall(r"^\| `(binlake_\w+)` \|", (DOCS / "monitoring.md").read_text(), re.MULTILINE))
    listed = {name for name in listed if not name.startswith("binlake_console_")}  # those of the console: its own tests
    assert listed == told


def test_every_line_of_the_log_is_on_the_page(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with json_log("shop", str(log)), RunLog("shop") as writer:
        writer.update(everything())
    with pytest.raises(errors.ConfigError), json_log("shop", str(log)), RunLog("shop"):
        raise errors.ConfigError("no", do_next="do", path="x")
    described, counts = log_fields()
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert {line["event"] for line in lines} == set(described)
    for line in lines:
        allowed = {"time", "level", "event", "stream", *described[line["event"]]}
        assert set(line) <= allowed | (counts if "counts" in allowed else set())


def everything() -> ProgressEvent:
    """A batch of which the log has every kind of line."""
    tables = (
        TableProgress("shop.a", 1, commit_instant="1", compaction_instant="2", clustering_instant="3", warning="w"),
        TableProgress("shop.b", 1, error="e"),
        TableProgress("shop.c", 1),
    )
    statements = (DdlProgress("shop.a", "p", "alter", ("add",), "1"), DdlProgress("shop.a", error="e"))
    return ProgressEvent(1, 1.0, {"plan": 1.0}, tables, notices=("n",), ddl=statements)


def log_fields() -> tuple[dict[str, set[str]], set[str]]:
    """Event -> further fields, as the page has them; and the names of the counts."""
    text = (DOCS / "monitoring.md").read_text()
    rows = re.findall(r"^\| (`[\w`, ]+`) \| (?:info|warning|error) \|(.*)\|$", text, re.MULTILINE)
    found: dict[str, set[str]] = {}
    for events, fields in rows:
        named = {name.strip(" `") for name in fields.replace("as `ddl`", "").split(",")} - {""}
        for event in re.findall(r"\w+", events):
            found[event] = named or found.get("ddl", set())
    counts = re.search(r"^Counts are (.*?);", text, re.MULTILINE | re.DOTALL)
    assert counts is not None
    return found, set(re.findall(r"`(\w+)`", counts[1]))


# -- the site ---------------------------------------------------------------------------------------------------------


def test_the_site_builds_and_fetches_nothing(tmp_path: Path) -> None:
    done = build(ROOT / "mkdocs.yml", tmp_path / "site")
    assert done.returncode == 0, done.stderr
    html = [file.read_text() for file in (tmp_path / "site").rglob("*.html")]
    assert len(html) > len(list(DOCS.rglob("*.md")))
    fetched = re.compile(r"<(?:script|img|iframe)[^>]+src=\"?https?:|<link[^>]+href=\"?https?:[^>]+stylesheet")
    assert [page[:80] for page in html if fetched.search(page)] == []


def test_control_a_dead_link_stops_the_build(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/index.md").write_text("# A\n\n[none](none.md)\n")
    (tmp_path / "mkdocs.yml").write_text("site_name: a\n")
    done = build(tmp_path / "mkdocs.yml", tmp_path / "site")
    assert (done.returncode, "none.md" in done.stderr) == (1, True)


def build(config: Path, site: Path) -> subprocess.CompletedProcess[str]:
    """Build as ``make docs`` does. Not with --quiet: it hides the warnings from --strict, too (measured)."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", str(config), "-d", str(site)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120, check=False)


def test_the_readme_is_about_a_page() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 80


def test_the_picture_of_the_home_page_fits_a_window_of_1300_pixels() -> None:
    """By the theme's sizes, 84 characters of a block have room between the site's two side bars."""
    [picture] = [block for block in blocks("text") if block.page == DOCS / "index.md"]
    assert max(map(len, picture.text.splitlines())) <= 80


def test_most_readers_come_for_mysql() -> None:
    """HBase stands behind what everybody needs, and no page's lake depends on the directory that one is in."""
    rows = [line for line in (DOCS / "index.md").read_text().splitlines() if line.startswith("| ")]
    assert [number for number, row in enumerate(rows) if "hbase" in row.lower()] > [12]
    features = [line for line in (ROOT / "README.md").read_text().splitlines() if line.startswith("- **")]
    assert features
    assert not [line for line in features if "HBase" in line]
    assert not [page for page in sorted(DOCS.rglob("*.md")) if "env:PWD" in page.read_text()]
