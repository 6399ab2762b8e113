CREATE TABLE `_data_new` (id INT PRIMARY KEY, a VARCHAR(20));
CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20));
CREATE TABLE `_t_new` (id INT PRIMARY KEY, a VARCHAR(20), b INT);
INSERT INTO t VALUES (1,'x'),(2,'y');
INSERT INTO `_t_new` VALUES (1,'x',1);
INSERT INTO `_data_new` VALUES (1,'mine');

-- the connector takes its snapshot here

INSERT INTO `_data_new` VALUES (2,'mine');
INSERT INTO `_t_new` VALUES (2,'y',2);
CREATE TABLE `_t_gho` (id INT PRIMARY KEY, a VARCHAR(20));
INSERT INTO `_t_gho` VALUES (5,'mine');
CREATE TABLE data (id INT PRIMARY KEY, a VARCHAR(20));
INSERT INTO data VALUES (1,'another');
RENAME TABLE t TO `_t_old`, `_t_new` TO t;
UPDATE `_data_new` SET a='still mine' WHERE id=1;
UPDATE t SET b=7 WHERE id=1;
