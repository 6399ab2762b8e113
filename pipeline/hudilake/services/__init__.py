"""Table services: cleaning, archival, savepoints, restore, compaction, fsck and repair."""
