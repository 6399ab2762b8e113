CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20), b INT);
INSERT INTO t VALUES (1,'x',10),(2,'y',20),(3,'z',30);

-- the connector takes its snapshot here

UPDATE t SET b = 11 WHERE id = 3;
ALTER TABLE t DROP COLUMN a, ADD COLUMN A VARCHAR(20) DEFAULT 'n';
UPDATE t SET A='Q' WHERE id=1;
