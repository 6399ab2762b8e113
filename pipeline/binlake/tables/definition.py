"""How a lake table is made: its Hudi configuration, its metadata table's, and its columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pyarrow as pa

from binlake.rows.upsert.keyless import DIGEST_FIELD
from binlake.rows.upsert.target import ROW_FIELD, Target, is_keyless
from binlake.settings import CompactionSettings, TableRules
from hudilake.format.layout.order import Order
from hudilake.metadata.config import MetadataConfig
from hudilake.policies import OrderPolicy
from hudilake.write.form import LOOKUP_FPP, USUAL_FPP, BaseFileForm

#: Of indexes that ask the filters.
_FPP: Final[Mapping[str, float]] = {"bloom": LOOKUP_FPP, "global_bloom": LOOKUP_FPP}


def metadata_config(rules: TableRules) -> MetadataConfig | None:
    """The configuration of the table's metadata table; None for a table without one."""
    return MetadataConfig.of(rules.metadata) if rules.metadata is not None else None


def base_file_form(rules: TableRules) -> BaseFileForm:
    """The form of the base files that commits write: row groups as compaction writes them, in the table's codec."""
    rule = rules.compaction or CompactionSettings()
    level = rules.compression_level if rules.compression == "zstd" else None
    policy = order_of_files(rules, rule)
    return BaseFileForm(
        rule.row_group_rows,
        rule.row_group_bytes,
        rules.compression,
        level,
        bloom_filter_fpp=bloom_fpp(rules, rule),
        order=Order(policy) if policy is not None else None,
    )


def order_of_files(rules: TableRules, rule: CompactionSettings) -> OrderPolicy | None:
    """The order of the rows in a base file; None for that of the record keys. Where a table is clustered, its files
    keep the order of the clustering when they are rewritten."""
    return rule.order_by or rules.clustering.order_by


def bloom_fpp(rules: TableRules, rule: CompactionSettings) -> float:
    """The rate of false positives of the filters in base files. A lookup asks a filter for every new key of a batch, so
    that at 0.001 a thousand of them would have most files read."""
    if rule.bloom_filter_fpp is not None:
        return rule.bloom_filter_fpp
    return _FPP.get(rules.index.type, USUAL_FPP)


def table_schema(target: Target, columns: pa.Schema) -> pa.Schema:
    """The table's schema: the value columns, then the columns that binlake adds; none to an append table."""
    config, merging = target.config, target.config.merging
    hidden = [pa.field(name, pa.int64()) for name in (config.ordering_field,) if name]
    if is_keyless(config):
        hidden += [pa.field(ROW_FIELD, pa.string()), pa.field(DIGEST_FIELD, pa.string())]
    hidden += [pa.field(name, pa.int64()) for name in merging.hidden_fields]
    hidden += [pa.field(name, pa.binary()) for name in merging.state_fields]
    return pa.schema([*columns, *hidden])
