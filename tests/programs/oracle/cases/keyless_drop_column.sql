CREATE TABLE t (id INT, a VARCHAR(20), b INT);
INSERT INTO t VALUES (1,'x',1),(2,'y',2),(3,'z',3);

-- the connector takes its snapshot here

ALTER TABLE t DROP COLUMN b;
DELETE FROM t WHERE id=1;
UPDATE t SET a='q' WHERE id=2;
