CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20), b INT);
INSERT INTO t VALUES (1,'x',10),(2,'y',20),(3,'z',30);

-- the connector takes its snapshot here

BEGIN;
UPDATE t SET id=9 WHERE id=1;
INSERT INTO t VALUES (1,'new',1);
DELETE FROM t WHERE id=9;
COMMIT;
