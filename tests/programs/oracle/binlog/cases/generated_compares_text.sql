CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(9) COLLATE utf8mb4_bin, b VARCHAR(9), c VARCHAR(9) COLLATE utf8mb4_nopad_bin, e ENUM('x','y'), is_a BOOL AS (a = 'x'), s INT AS (STRCMP(b, 'x')) STORED, fs INT AS (FIND_IN_SET('x', c)), later INT AS (is_a + 1), of_e INT AS (CASE e WHEN 'X' THEN 1 ELSE 2 END), l INT AS (LENGTH(a)), cc VARCHAR(30) AS (CONCAT(a, b))) COLLATE utf8mb4_general_ci;
INSERT INTO t (id, a, b, c, e) VALUES (1, 'x', 'x', 'x', 'x'), (2, 'X', 'X', 'X,y', 'y'), (3, 'x ', 'x ', 'x ', NULL), (4, NULL, 'ẋ', NULL, 'x');
CREATE TABLE u LIKE t;
INSERT INTO u (id, a, b, c, e) VALUES (1, 'x', 'x', 'x', 'x'), (2, 'X', 'X', 'X,y', 'y');
CREATE TABLE keeps (id INT PRIMARY KEY, a VARCHAR(9), is_a BOOL AS (a = 'x'));
INSERT INTO keeps (id, a) VALUES (1, 'x'), (2, 'X'), (3, 'y');

-- the connector takes its snapshot here

ALTER TABLE t MODIFY a VARCHAR(20);
ALTER TABLE t MODIFY b VARCHAR(20) COLLATE utf8mb4_bin, MODIFY e ENUM('x','y') COLLATE utf8mb4_bin;
ALTER TABLE t CHANGE c c VARCHAR(20);
INSERT INTO t (id, a, b, c, e) VALUES (5, 'X', 'X', 'X', 'x');
ALTER TABLE u CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin;
INSERT INTO u (id, a, b, c, e) VALUES (3, 'X', 'X', 'X', 'x');
ALTER TABLE keeps MODIFY a VARCHAR(20) NOT NULL, ADD z INT;
ALTER TABLE keeps MODIFY a VARCHAR(30) NOT NULL;
INSERT INTO keeps (id, a) VALUES (4, 'x');
