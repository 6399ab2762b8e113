"""The ``dump`` section: files of change events, which ``binlake dump`` writes and ``binlake replay`` reads."""

from __future__ import annotations

import re
from typing import Self

from pydantic import Field, field_validator, model_validator

from binlake.settings.sections import LakeSettings
from binlake.settings.templates import placeholders
from hudilake.validation import Count, Section, Text, mistake
from lakemetastore.settings.options import Options, plain

#: Placeholders of a template: the names of a directory's records, and their time.
WHOSE, WHEN = frozenset({"database", "table", "topic"}), frozenset({"year", "month", "day", "date", "hour"})
#: Endings of a template's file name that ``binlake dump`` can write.
WRITTEN = (".jsonl", ".jsonl.gz", ".jsonl.zst", ".parquet")


class DumpSettings(Section):
    """Dumps of change events: where they are, how they are laid out, how they are written and replayed."""

    uri: Text | None = None
    """Root of the dumps: where ``binlake dump`` writes, and ``binlake replay`` reads unless told otherwise."""
    options: Options | None = None
    """The store's own options; null takes the lake's options, if the lake is in a store of the same kind."""
    path: Text = "{database}.{table}/dt={date}/hour={hour}/*.jsonl.gz"
    """Where files are below the root. Placeholders: ``{database}``, ``{table}``, ``{topic}``, and the time (UTC) as
    ``{date}`` (2026-11-21) or ``{year}``, ``{month}``, ``{day}``, and ``{hour}``; without ``{hour}`` the layout is by
    day. The last part is a glob pattern. Its end chooses the format that ``binlake dump`` writes: ``.jsonl``,
    ``.jsonl.gz``, ``.jsonl.zst`` or ``.parquet``. ``binlake replay`` recognises the format by the content of a file."""
    ddl_path: Text = "_ddl"
    """Directory below the root for the dumped schema change topics (``kafka.ddl_topics``). A replay reads all of it,
    because a table's schema is the result of all its DDL."""
    roll_bytes: Count = 128 * 1024 * 1024
    """After so many record bytes ``binlake dump`` closes its files and begins new ones."""
    roll_seconds: float = Field(default=600.0, gt=0)
    """After so much time it does so too. Records are in no file before."""
    commit_bytes: Count = 512 * 1024 * 1024
    """Record bytes that one commit of a replay takes, approximately; a larger day takes several commits."""
    base_files_from_rows: Count | None = 10_000
    """A new file group of a replay begins with a base file if it has at least so many rows, else with a log file; null
    writes log files only."""

    @field_validator("path")
    @classmethod
    def _template(cls, path: str) -> str:
        try:
            named = placeholders(path)
        except ValueError as error:
            raise mistake("is no template: a brace stands alone, or holds more than a name") from error
        if strange := sorted(named - WHOSE - WHEN):
            raise mistake(f"may not name {', '.join(strange)}; it may {', '.join(sorted(WHOSE | WHEN))}")
        if "date" not in named and not {"year", "month", "day"} <= named:
            raise mistake("must name the day: {date}, or {year}, {month} and {day}")
        *directories, name = path.split("/")
        if any(part in ("", ".", "..") for part in directories) or not name or "{" in name:
            raise mistake("must be a relative path whose last part is a glob pattern without placeholders")
        if any(re.search(r"[*?\[]", part) for part in directories):
            raise mistake("may have a glob pattern only as its last part")
        return path

    @field_validator("ddl_path")
    @classmethod
    def _directory(cls, path: str) -> str:
        if "{" in path or any(part in ("", ".", "..") for part in path.split("/")):
            raise mistake("must be a relative path without placeholders")
        return path

    @model_validator(mode="after")
    def _apart(self) -> Self:
        if self.path.split("/")[0] == self.ddl_path.split("/")[0]:
            raise mistake("path and ddl_path must not begin with the same directory")
        return self

    def storage_options(self, uri: str, lake: LakeSettings) -> dict[str, str]:
        """The options for a dump, in clear text. ``uri``: its root."""
        if self.options is not None:
            return plain(self.options)
        return options_beside(lake, uri)


def options_beside(lake: LakeSettings, uri: str) -> dict[str, str]:
    """The options for a place without options of its own, in clear text: the lake's if it is in a store of the same
    kind. ``uri``: the place's root."""
    return lake.storage_options() if _scheme(uri) == _scheme(lake.uri) else {}


def _scheme(uri: str) -> str:
    scheme, colon, _ = uri.partition(":")
    return scheme.lower() if colon and "/" not in scheme else "file"
