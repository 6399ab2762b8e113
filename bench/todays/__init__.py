"""Today's peers: those that need another Spark, or none."""
