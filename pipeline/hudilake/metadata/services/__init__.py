"""TableServices of the metadata table: compaction, cleaning, archival, and the rollback of its entries."""
