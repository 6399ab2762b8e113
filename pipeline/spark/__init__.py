"""Spark itself: session, Java, jars, the Kafka source, tasks as plain functions, tables as DataFrames."""
