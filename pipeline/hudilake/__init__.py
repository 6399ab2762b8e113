"""The Hudi table format, usable alone: table version 9, timeline layout 2. No Spark and no Kafka in here."""
