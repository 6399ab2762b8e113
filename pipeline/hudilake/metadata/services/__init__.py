"""Services of the metadata table, which is a Hudi table of its own: compaction, cleaning, archival and rollback.

They share with those of a data table the plans and actions of the timeline (``commit.compaction_plan``,
``commit.clean``, ``commit.rollback``), the rule by which slices are superfluous, and the way to the history. Apart are:

- compaction: the format wants all file groups in one plan, base files are HFiles of merged records, and an instant that
  may still be rolled back on the data table holds it up; there is no ratio, no retention of deletes, no other owner,
  because it runs under the data table's lock;
- which slices are kept: versions and not commits, for no reader asks for an earlier time of it;
- archival: delta commits leave without a gap, and a compaction stays while its base file is the newest;
- rollback: its target may be completed here while it is pending on the data table.
"""
