"""binlake: change events from MySQL binlogs into Apache Hudi tables, from Python, on Spark."""
