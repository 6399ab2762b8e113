CREATE TABLE t (id INT PRIMARY KEY, v INT, w DECIMAL(8,2));
INSERT INTO t (id, v, w) VALUES (1, 2, 1.50);

-- the connector takes its snapshot here

ALTER TABLE t MODIFY v VARCHAR(10), MODIFY w VARCHAR(20);
ALTER TABLE t MODIFY v ENUM('2', '1'), MODIFY w CHAR(4);
ALTER TABLE t CHANGE v u VARCHAR(10);
ALTER TABLE t MODIFY u ENUM('1', '2');
INSERT INTO t (id, u, w) VALUES (2, '1', 'abc');
