CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20), b INT);
INSERT INTO t VALUES (1,'x',10),(2,'y',20),(3,'z',30);

-- the connector takes its snapshot here

CREATE TABLE `_t_new` LIKE t;
ALTER TABLE `_t_new` ADD COLUMN c INT NOT NULL DEFAULT 4;
INSERT IGNORE INTO `_t_new` (id,a,b) SELECT id,a,b FROM t LOCK IN SHARE MODE;
RENAME TABLE t TO `_t_old`, `_t_new` TO t;
DROP TABLE IF EXISTS `_t_old`;
UPDATE t SET c=9 WHERE id=1;
