"""The demo: recorded and live change events through Kafka into Hudi tables, compared cell by cell at the end."""
