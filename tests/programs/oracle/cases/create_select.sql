CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20), b INT);
INSERT INTO t VALUES (1,'x',10),(2,'y',20),(3,'z',30);

-- the connector takes its snapshot here

CREATE TABLE s AS SELECT * FROM t;
UPDATE s SET b=5 WHERE id=3;
