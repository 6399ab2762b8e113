"""Erasure: rows and all their versions leave the bytes of a table, and a report says which file held them and when it
went.

1. ``plan_erasure`` reads every file of the table's directory: which hold a record key, and what else tells of its rows
   (``search``).
2. ``erase`` takes the rows out of the newest file slices (``rewrite``): a commit deletes them, a compaction of those
   file groups alone leaves the delete out. Slices that held them are cleaned, the metadata table is compacted and its
   former slices go, and files beside the format follow. Each is an action that Hudi's readers and writers know.
3. ``scan`` reads all bytes again, decompressed, and finds nothing.

What is asked for is kept in the table until it is done, so whoever erases the same keys again goes on after a crash.
The record that stays names files and times, and no key (``record``).
"""
