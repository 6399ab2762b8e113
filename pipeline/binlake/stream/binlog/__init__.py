"""The stream that reads a server's binlog itself: no Kafka, no Spark, one process."""
