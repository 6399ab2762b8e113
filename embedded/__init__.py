"""Real services for the demo and the tests, run on this machine from Maven jars with nothing but a Java runtime."""
