"""What keeps lake tables small and fast: compaction, clustering, cleaning and archival, beside a stream or alone."""
