"""Raw records and offsets, from Kafka. Does not depend on tables."""
