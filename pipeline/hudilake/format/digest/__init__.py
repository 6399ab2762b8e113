"""Digests of rows, and sums of them that do not depend on the order of the rows."""
