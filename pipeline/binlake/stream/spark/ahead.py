"""What the first rows of a stream need, imported before they come: while Spark starts, and before workers are forked.

Commands import compiled loops and SQL engines when a row needs them, which few commands have. A stream has rows, and
every new worker of Spark would import, and on a new machine compile, for itself. It stands alone: the driver and the
daemon both import it.
"""

from __future__ import annotations

import pyarrow as pa


def import_for_tasks() -> None:
    """Import what tasks call for: decoders of bytes, hashes of keys, expressions over columns."""
    import binlake.decode.templates.avro_check_kernel
    import binlake.decode.templates.avro_scan
    import binlake.decode.templates.scan
    import binlake.hbase.formats.hbase_avro
    import binlake.hbase.formats.hbase_result
    import binlake.hbase.formats.wal_scan
    import binlake.rows.upsert.engines.hashing
    import binlake.schema.rules.generated  # noqa: F401
    import hudilake.format.definition.xxhash32  # noqa: F401

    pa.scalar(0)  # pyarrow imports pandas, where it is installed, with the first value it makes


def import_for_driver() -> None:
    """Import what a batch calls for on the driver: expressions over columns, hashes of keys, cells' markers."""
    import binlake.hbase.rules.markers
    import binlake.hbase.rules.masking
    import binlake.rows.upsert.engines.hashing
    import binlake.schema.rules.generated  # noqa: F401
    import hudilake.format.definition.xxhash32  # noqa: F401

    pa.scalar(0)
