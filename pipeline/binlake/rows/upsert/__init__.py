"""Change batches -> one Arrow table per file group: targets, keys, order, buckets, parcels. Independent of Spark."""
