CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20), b INT);
INSERT INTO t VALUES (1,'x',10),(2,'y',20),(3,'z',30);

-- the connector takes its snapshot here

UPDATE t SET b = 11 WHERE id = 3;
ALTER TABLE t DROP COLUMN a;
UPDATE t SET b = 12 WHERE id = 3;
ALTER TABLE t ADD COLUMN A INT;
UPDATE t SET A=5 WHERE id=1;
