"""Guards removed one at a time: for each, a test notices. ``python -m tests.programs.mutants`` runs them."""
