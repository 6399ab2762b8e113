"""Where a stream stands: ledger, lease, checkpoint, topics, skipped offsets, the height of the binlog."""
