"""The definition of a table: hoodie.properties, Avro and Arrow schemas, record keys, buckets."""
