"""Other buckets for a table while others write to it: another number of them, or single ones split and merged.

``units`` says which file groups exchange rows, ``move`` writes their rows to new file groups, ``steps`` does it under
one replacecommit.
"""
