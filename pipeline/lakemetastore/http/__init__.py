"""The HTTP API over the metastore."""
