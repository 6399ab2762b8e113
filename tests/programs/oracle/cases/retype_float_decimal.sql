CREATE TABLE t (id INT PRIMARY KEY, b FLOAT);
INSERT INTO t VALUES (1,1.5);

-- the connector takes its snapshot here

ALTER TABLE t MODIFY b DECIMAL(30,10);
INSERT INTO t VALUES (2,2.5);
