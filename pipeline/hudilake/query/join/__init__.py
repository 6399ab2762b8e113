"""Tables joined and aggregated bucket by bucket, without a shuffle."""
