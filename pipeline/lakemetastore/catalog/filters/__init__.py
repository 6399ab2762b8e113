"""Conditions on partition columns as the clients of the Hive Metastore write them."""
