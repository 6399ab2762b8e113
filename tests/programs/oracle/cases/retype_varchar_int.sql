CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20), b INT);
INSERT INTO t VALUES (1,'1',10),(2,'2',20),(3,'1e2',30);

-- the connector takes its snapshot here

SET SESSION sql_mode='';
ALTER TABLE t MODIFY a INT;
INSERT INTO t VALUES (4,5,5);
