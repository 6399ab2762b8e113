"""Tests of the public surface of hudilake."""
