"""Commands that keep tables small and fast, or put them back: services, buckets, savepoints, the order of rows."""
