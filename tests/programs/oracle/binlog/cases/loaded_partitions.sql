-- the partitions are older than the load

CREATE TABLE t (id INT PRIMARY KEY, v INT) PARTITION BY RANGE (id) (PARTITION a VALUES LESS THAN (10), PARTITION b VALUES LESS THAN (20));
INSERT INTO t VALUES (1, 1), (11, 11);

-- the connector takes its snapshot here

ALTER TABLE t TRUNCATE PARTITION a;
INSERT INTO t VALUES (2, 2);
