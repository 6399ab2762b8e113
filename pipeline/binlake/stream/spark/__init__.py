"""Access to Spark: session, Java, jars, the Kafka source, tasks as plain functions, tables as DataFrames."""
