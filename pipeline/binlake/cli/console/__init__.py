"""The console: a stream, its tables and its lake in a browser and at a terminal.

A watch looks at each stream from outside, as ``binlake status`` does, and keeps what it saw; a page is made of that
and accesses no storage, except where a person asks for one table, a row or a query.
"""
