"""Tables merged by their writer (``hudi.definition.merging``): what rows are now, and what events make of them."""
