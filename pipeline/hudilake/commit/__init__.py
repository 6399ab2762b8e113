"""Changes of the timeline: what is checked before an instant, commits, rollbacks, cleans and savepoints."""
