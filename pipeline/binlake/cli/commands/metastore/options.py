"""What the commands of the metastore take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

MetastoreConf = Annotated[Path, typer.Argument(help="The settings file of the metastore (YAML).", metavar="CONF")]
LakeTables = Annotated[
    list[str] | None,
    typer.Argument(help="Tables, as database.table or by path in their lake; all if none.", metavar="TABLE"),
]
