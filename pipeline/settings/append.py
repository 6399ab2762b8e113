"""What an append table cannot have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def append_problem(rules: Mapping[str, Any]) -> str | None:
    """Why a table cannot have these rules together, as ``kind: append`` or the index ``none`` goes; None if it can.

    ``rules``: the fields of ``TableSettings``.
    """
    if rules["kind"] != "append":
        return "index.type none is for kind append only" if rules["index"].type == "none" else None
    if rules["key"] is not None:
        return "kind append has no key: leave key out"
    if rules["merge"].engine != "newest":
        return f"kind append has no merge engine: its rows never meet, leave merge.engine {rules['merge'].engine} out"
    if rules["conflicts"] == "column":
        return "kind append cannot have conflicts column: its rows are never changed, take row"
    if rules["index"].type not in ("bucket", "none"):
        return f"kind append has no index: leave index.type {rules['index'].type} out"
    return None
