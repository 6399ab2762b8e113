"""Settings of the metastore's service and of its clients; how a file of settings is read, for streams too."""
