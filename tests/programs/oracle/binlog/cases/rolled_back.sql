-- rows of transactions with temporary tables are in the binlog, and rolled back there

CREATE TABLE t (id INT PRIMARY KEY);
INSERT INTO t VALUES (1);

-- the connector takes its snapshot here

BEGIN;
INSERT INTO t VALUES (2);
CREATE TEMPORARY TABLE d1 (id INT);
INSERT INTO t VALUES (3);
ROLLBACK;
BEGIN;
INSERT INTO t VALUES (4);
CREATE TEMPORARY TABLE d2 (id INT);
SAVEPOINT s;
INSERT INTO t VALUES (5);
ROLLBACK TO SAVEPOINT s;
INSERT INTO t VALUES (6);
COMMIT;
