CREATE TABLE t (id INT PRIMARY KEY, b INT, g BIGINT AS (b DIV 3) STORED);
INSERT INTO t (id,b) VALUES (1,10);

-- the connector takes its snapshot here

UPDATE t SET b=20;
ALTER TABLE t MODIFY g BIGINT AS (b * 2) STORED;
