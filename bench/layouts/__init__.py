"""Layouts of one table by binlake, Hudi and Delta, and the files that queries then read."""
