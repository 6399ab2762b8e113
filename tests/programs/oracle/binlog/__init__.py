"""The oracle for a stream that reads the server's binlog itself: a MariaDB, and neither Kafka nor a connector."""
