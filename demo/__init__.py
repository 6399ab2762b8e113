"""The demo: recorded and live change events through Kafka into Hudi tables, judged cell by cell at the end."""
