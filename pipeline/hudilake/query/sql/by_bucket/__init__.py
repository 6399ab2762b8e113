"""Parts of a query that are run bucket by bucket: joins and groups by the keys of the tables' buckets."""
