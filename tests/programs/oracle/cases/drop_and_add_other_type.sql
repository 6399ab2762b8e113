CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20), b INT);
INSERT INTO t VALUES (1,'x',10),(2,'y',20),(3,'z',30);

-- the connector takes its snapshot here

ALTER TABLE t DROP COLUMN a;
ALTER TABLE t ADD COLUMN a DATE;
UPDATE t SET a='2020-01-01' WHERE id=2;
