"""Prometheus' own checker of rules and expressions, from Debian's package where it is not installed."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.services.debian import unpacked


def promtool(*words: str | Path) -> str:
    """What it says of an input that is wrong; "" if it finds nothing. Raises as ``unpacked``."""
    program = shutil.which("promtool") or unpacked("prometheus", "usr/bin") / "promtool"
    done = subprocess.run([program, *words], capture_output=True, text=True, check=False)
    return done.stdout + done.stderr if done.returncode else ""


def unparsed(expressions: Sequence[str], scratch: Path) -> str:
    """What it says of expressions that are none of PromQL. ``scratch``: a directory to write in."""
    rules: list[dict[str, Any]] = [{"record": f"r{n}", "expr": one} for n, one in enumerate(expressions)]
    file = scratch / "expressions.json"  # JSON is YAML
    file.write_text(json.dumps({"groups": [{"name": "g", "rules": rules}]}))
    return promtool("check", "rules", file)
