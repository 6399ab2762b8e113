"""The state of lake tables as commits: instants, file slices, column ranges, schemas; register, reconcile, rebuild."""
