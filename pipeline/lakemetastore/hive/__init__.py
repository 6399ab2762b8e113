"""The Hive Metastore's Thrift protocol over the catalog."""
