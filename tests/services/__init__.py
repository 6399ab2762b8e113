"""Real services for the tests, started once a session."""
