CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20), b INT);
INSERT INTO t VALUES (1,'x',10),(2,'y',20),(3,'z',30);

-- the connector takes its snapshot here

ALTER TABLE t RENAME COLUMN a TO c;
ALTER TABLE t ADD COLUMN a INT DEFAULT 3;
UPDATE t SET c='Q' WHERE id=1;
