"""An open table: its state, and its writer's commits."""
