"""Tables merged by their writer (``hudilake.format.definition.merging``): what rows are now, and what events make of
them.
"""
