"""The process that serves a metastore, and its settings put together."""
