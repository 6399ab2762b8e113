"""Guards removed one at a time: for each there is a test that notices. ``python -m tests.mutants`` runs them."""
