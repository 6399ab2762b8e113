"""The names that connectors give to the topics of a table."""

from __future__ import annotations

import re

from binlake.decode.changes import SourceTable


def topic_suffix(source: SourceTable) -> str:
    """``database.table`` as the connector spells it at the end of a topic name (recorded: other signs become ``_``)."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", f"{source.database}.{source.table}")
