"""The soak: ingest, compaction, cleaning and archival for as long as asked, killed at random, checked at intervals."""
