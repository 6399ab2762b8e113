SET SESSION sql_mode = '';
CREATE TABLE t (id INT PRIMARY KEY, e ENUM('日','b','é') CHARACTER SET utf8mb4, f SET('日','b','é') CHARACTER SET utf8mb4, g ENUM('é','b') CHARACTER SET utf8mb4) CHARACTER SET latin1;
INSERT INTO t VALUES (1, '日', '日,é', 'é'), (2, 'b', 'b', 'b'), (3, 'é', 'é', 'é');

-- the connector takes its snapshot here

SET SESSION sql_mode = '';
INSERT INTO t VALUES (4, '日', 'é', 'é');
ALTER TABLE t MODIFY g ENUM('é','b');
ALTER TABLE t CONVERT TO CHARACTER SET latin1;
ALTER TABLE t ADD COLUMN n VARCHAR(9) DEFAULT 'é', ADD COLUMN o ENUM('é','x') NOT NULL;
ALTER TABLE t MODIFY n VARBINARY(9), MODIFY o VARBINARY(9);
INSERT INTO t (id, g) VALUES (5, 'é');
