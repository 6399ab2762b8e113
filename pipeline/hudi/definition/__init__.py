"""What a table is: hoodie.properties, Avro and Arrow schemas, record keys, buckets."""
