CREATE TABLE t (id INT PRIMARY KEY, b TIME, c TIME(3));
INSERT INTO t VALUES (1,'12:34:56','100:00:00.999');

-- the connector takes its snapshot here

ALTER TABLE t DROP b, RENAME COLUMN c TO b;
ALTER TABLE t DROP b;
