SET SESSION sql_mode = '';
CREATE TABLE t (id INT PRIMARY KEY, p VARCHAR(20), q VARCHAR(20), r VARCHAR(20), s TEXT, u VARCHAR(20), c CHAR(9), e ENUM('日','b'));
INSERT INTO t VALUES (1, '日本é', '日本é', '日😀é', '日本é', '日本é', '日本é', '日');

-- the connector takes its snapshot here

SET SESSION sql_mode = '';
INSERT INTO t VALUES (2, '€日', '€日', '😀日', '€日', '€日', '€日', 'b');
ALTER TABLE t MODIFY p VARCHAR(20) COLLATE latin1_bin;
ALTER TABLE t MODIFY q VARCHAR(20) ASCII;
ALTER TABLE t MODIFY r NATIONAL VARCHAR(20);
ALTER TABLE t CHANGE s s2 VARCHAR(30) NOT NULL COLLATE latin1_swedish_ci;
ALTER TABLE t MODIFY u VARCHAR(20) NOT NULL COLLATE utf8mb4_bin;
ALTER TABLE t MODIFY c CHAR(9) UNICODE;
INSERT INTO t VALUES (3, 'é', 'x', 'é', 'é', '日', '日', 'b');
