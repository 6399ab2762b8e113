-- a table that was loaded, and to which a statement comes but no row

CREATE TABLE t (id INT PRIMARY KEY);
INSERT INTO t VALUES (1), (2);

-- the connector takes its snapshot here

ALTER TABLE t ADD COLUMN c INT DEFAULT 7;
