"""hudi-rs' writer and ours on one table: ``python -m tests.programs.proofs turns``."""
