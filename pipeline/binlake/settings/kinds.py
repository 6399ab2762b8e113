"""What tables of a kind, and stitched tables, cannot have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from binlake.settings.merging import StitchedSettings
from binlake.settings.table_rules import ClusteringSettings, TableRules


def kind_problem(rules: Mapping[str, Any]) -> str | None:
    """Why a table of this kind and index cannot have these rules together; None if it can.

    ``rules``: the fields of ``TableSettings``.
    """
    if rules["change_log"] is not None and (rules["type"] != "copy_on_write" or rules["kind"] == "append"):
        return f"change_log {rules['change_log']}: only kind upsert of type copy_on_write has change logs"
    if rules["kind"] == "append":
        return _of_append(rules)
    if rules["index"].type == "none":
        return "index.type none is for kind append only"
    return _of_lookup(rules) if rules["index"].looks_up else _of_buckets(rules)


def _of_buckets(rules: Mapping[str, Any]) -> str | None:
    if rules["merge"].rule().keeps_versions and (why := _of_versions(rules)) is not None:
        return f"merge.engine {rules['merge'].engine}: {why}"
    if rules["type"] == "copy_on_write" and rules["index"].type == "consistent_bucket":
        return "index.type consistent_bucket: Hudi has it for merge_on_read alone: take index.type bucket, or that type"
    if rules["clustering"] != ClusteringSettings():
        index = rules["index"].type
        return f"index.type {index}: rows may not leave their bucket: leave clustering out, set compaction.order_by"
    return None


def _of_versions(rules: Mapping[str, Any]) -> str | None:
    if rules["partition"] is not None:
        return "a version would have to leave its partition where the row does: leave partition out"
    if rules["index"].type != "bucket":
        return f"all versions of a row are in one bucket: take index.type bucket, not {rules['index'].type}"
    if rules["conflicts"] == "column":
        return "versions are written whole: conflicts may not be column"
    return None


def _of_append(rules: Mapping[str, Any]) -> str | None:
    if rules["key"] is not None:
        return "kind append has no key: leave key out"
    if rules["merge"].engine != "newest":
        return f"kind append has no merge engine: its rows never meet, leave merge.engine {rules['merge'].engine} out"
    if rules["conflicts"] == "column":
        return "kind append cannot have conflicts column: its rows are never changed, take row"
    if rules["index"].type not in ("bucket", "none"):
        return f"kind append has no index: leave index.type {rules['index'].type} out"
    return None


def _of_lookup(rules: Mapping[str, Any]) -> str | None:
    index, conflicts, engine = rules["index"].type, rules["conflicts"], rules["merge"].engine
    why = None
    if conflicts != "queue":
        why = f"conflicts: {conflicts} is not possible, because where a row goes depends on all earlier commits"
    elif engine != "newest":
        why = f"merge.engine: {engine} is not possible, because its rows are merged bucket by bucket"
    elif index.endswith("record_index") and not rules["metadata"].enabled:
        why = "it is kept in the metadata table, which metadata.enabled: false leaves out"
    return None if why is None else f"index.type: {index}: {why}"


def stitched_problem(rules: TableRules, stitched: StitchedSettings) -> str | None:
    """Which of its rules a stitched table cannot have; None if it can have them all."""
    if rules.partition is not None and rules.partition.column not in stitched.key:
        column = rules.partition.column
        return f"its partition column {column} must be one of its key, because every source must know a row's partition"
    if rules.columns is not None and rules.columns.computed:
        return "it can have no columns.computed: give expressions in the columns of its sources"
    if (why := rules.merge.refusal("it can have no merge engine of its own")) is not None:
        return why
    if rules.index.looks_up:
        return f"it cannot have index.type: {rules.index.type}, because its rows are merged bucket by bucket"
    if rules.kind == "append":
        return "it cannot be an append table: rows of an append table are never put together"
    return None
