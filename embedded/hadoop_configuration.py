"""Configuration files in Hadoop's form, which Hive and HBase read too."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from xml.sax.saxutils import escape


def write_configuration(file: Path, settings: Mapping[str, str]) -> None:
    """Write a ``*-site.xml``."""
    rows = (
        f"<property><name>{escape(name)}</name><value>{escape(value)}</value></property>"
        for name, value in settings.items()
    )
    file.write_text(f"<configuration>{''.join(rows)}</configuration>")
