"""Tables joined and aggregated bucket by bucket, without a shuffle."""

from hudilake.extras import require_extra

require_extra("hudilake", "sql", "duckdb")
