"""Raw records and offsets, from Kafka and files; tables of the source's server. Does not depend on lake tables."""
