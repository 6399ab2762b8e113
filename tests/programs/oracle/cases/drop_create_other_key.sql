CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20), b INT);
INSERT INTO t VALUES (1,'x',10),(2,'y',20),(3,'z',30);

-- the connector takes its snapshot here

UPDATE t SET a = 'w' WHERE id = 2;
DROP TABLE t;
CREATE TABLE t (k VARCHAR(5) PRIMARY KEY, v INT);
INSERT INTO t VALUES ('a',1);
