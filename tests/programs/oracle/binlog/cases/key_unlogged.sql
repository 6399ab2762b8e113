CREATE TABLE t (id INT NOT NULL, a VARCHAR(20));
INSERT INTO t VALUES (1,'x'),(2,'y');

-- the connector takes its snapshot here

UPDATE t SET a='q' WHERE id=1;
SET sql_log_bin=0;
ALTER TABLE t ADD PRIMARY KEY (id);
SET sql_log_bin=1;
UPDATE t SET a='r' WHERE id=2;
INSERT INTO t VALUES (3,'z');
