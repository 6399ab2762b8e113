"""Raw records and offsets, from Kafka. Knows no tables."""
