"""Arguments that several commands take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

SettingsFile = Annotated[Path, typer.Argument(help="The settings file (YAML).", metavar="CONF")]
