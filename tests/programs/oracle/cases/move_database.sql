CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20), b INT);
INSERT INTO t VALUES (1,'x',10),(2,'y',20),(3,'z',30);

-- the connector takes its snapshot here

RENAME TABLE t TO oracle_db_2.t;
UPDATE oracle_db_2.t SET b=5 WHERE id=3;
