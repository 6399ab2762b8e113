"""Settings of the metastore's service, and of those who call it."""
