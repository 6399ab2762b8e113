"""``binlake init``: a first settings file, from what Kafka and the database say."""
