CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20), b INT);
INSERT INTO t VALUES (1,'x',10),(2,'y',20),(3,'z',30);

-- the connector takes its snapshot here

CREATE TABLE u LIKE t;
RENAME TABLE t TO oracle_db_2.t;
RENAME TABLE u TO t;
INSERT INTO t VALUES (5,'five',5);
DELETE FROM oracle_db_2.t WHERE id=1;
