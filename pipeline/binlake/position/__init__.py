"""The position of a stream: ledger, lease, checkpoint, topics, skipped offsets, the newest binlog positions."""
