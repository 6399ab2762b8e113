CREATE TABLE t (id INT PRIMARY KEY, b DOUBLE);
INSERT INTO t VALUES (1,1.5);

-- the connector takes its snapshot here

ALTER TABLE t MODIFY b FLOAT;
INSERT INTO t VALUES (2,2.5);
