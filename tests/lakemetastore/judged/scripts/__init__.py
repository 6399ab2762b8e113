"""Calls for both sides, by subject. Each module gives generated and chosen calls of a seed."""
