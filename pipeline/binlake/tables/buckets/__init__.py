"""The buckets of lake tables: the ids of their file groups, their sizes, and the move to other buckets."""
