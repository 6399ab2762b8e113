-- the last statement comes without a row, about a table that was made LIKE another and swapped in

-- create table
CREATE TABLE t1 (`id` VARCHAR(12) NOT NULL, c2 BIGINT DEFAULT 87, c3 DOUBLE DEFAULT 123456.789, `c4` TIMESTAMP NULL DEFAULT '2024-02-29 12:34:56', PRIMARY KEY (id));
-- insert
INSERT IGNORE INTO `t1` (`id`, c2, `c3`, `c4`) VALUES ('Ada', 7, 0, '2000-02-29 23:59:59'), ('O''Brien', 2, 0, NULL), ('B', 0, 0, '2024-02-29 23:59:59'), (' lead', 87, 0.1, '2000-02-29 23:59:59'), ('O''Brien', 57, NULL, NULL);

-- the connector takes its snapshot here

-- key update
UPDATE t1 SET id = '-3.5' WHERE id IS NOT NULL ORDER BY id LIMIT 1;
-- update
UPDATE `t1` SET `c2` = 2, `c4` = '1970-01-01 23:59:59' WHERE `id` = 'a';
-- replace
REPLACE INTO t1 (id, c2, `c4`) VALUES ('a,b', 1, '2000-02-29 12:34:56'), ('a,b', NULL, '1970-01-01 23:59:59'), ('a', 2, '1970-01-01 12:34:56'), ('a', 7, '2000-02-29 23:59:59'), ('12', 0, NULL), ('🧪', -9223372036854775808, '2000-02-29 12:34:56');
-- update
UPDATE `oracle_db`.t1 SET `c3` = NULL WHERE `id` = 'Łukasz';
-- transaction
START TRANSACTION;
-- transaction
UPDATE `t1` SET c3 = -1.5 WHERE `id` = '';
-- transaction
DELETE FROM t1 WHERE id = '';
-- transaction
UPDATE `t1` SET `c2` = 2 WHERE `id` = '雪';
-- transaction
COMMIT;
-- widen column
alter table `t1` MODIFY COLUMN `c4` TIMESTAMP(6) NULL FIRST;
-- create partitioned
CREATE TABLE p5 (id INT NOT NULL, a VARCHAR(20), b INT, PRIMARY KEY (id)) PARTITION BY LIST COLUMNS (id) (PARTITION p0 VALUES IN (1,2,3), PARTITION p1 VALUES IN (4,5,6,7), PARTITION p2 VALUES IN (8,9,10,11,12)) /*!999999 unknown to it */;
-- create partitioned
INSERT INTO p5 VALUES (1, 'r1', 10), (2, 'r2', 20), (3, 'r3', 30), (4, 'r4', 40), (5, 'r5', 50), (6, 'r6', 60), (7, 'r7', 70), (8, 'r8', 80), (9, 'r9', 90), (10, 'r10', 100), (11, 'r11', 110), (12, 'r12', 120);
-- gh-ost
create /* gh-ost */ table `oracle_db`.`_t1_ghc` (id bigint unsigned auto_increment, last_update timestamp not null DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, hint varchar(64) charset ascii not null, value varchar(4096) charset ascii not null, primary key(id), unique key hint_uidx(hint)) auto_increment=256;
-- gh-ost
insert /* gh-ost */ into `oracle_db`.`_t1_ghc` (id, hint, value) values (2, 'state', 'GhostTableMigrated');
-- gh-ost
create /* gh-ost */ table `oracle_db`.`_t1_gho` like `oracle_db`.`t1`;
-- gh-ost
alter /* gh-ost */ table `oracle_db`.`_t1_gho` ADD COLUMN `c6` BIGINT DEFAULT 24;
-- gh-ost
insert /* gh-ost `oracle_db`.`t1` */ ignore into `oracle_db`.`_t1_gho` (`c4`, `id`, `c2`, `c3`) (select `c4`, `id`, `c2`, `c3` from `oracle_db`.`t1` force index (`PRIMARY`) lock in share mode);
-- gh-ost
rename /* gh-ost */ table `oracle_db`.`t1` to `oracle_db`.`_t1_del`, `oracle_db`.`_t1_gho` to `oracle_db`.`t1`;
-- gh-ost
drop /* gh-ost */ table if exists `oracle_db`.`_t1_ghc`;
-- gh-ost
drop /* gh-ost */ table if exists `oracle_db`.`_t1_del`;
-- add column
alter table t1 ADD COLUMN IF NOT EXISTS `c7` DATETIME(3) DEFAULT '1000-01-01 00:00:01.000';
-- update
UPDATE t1 SET `c3` = 0, `c7` = NULL WHERE c3 <> 0.1 ORDER BY id LIMIT 4;
-- transaction
START TRANSACTION;
-- transaction
INSERT INTO oracle_db.t1 (`c4`, `id`, c2, c3, `c6`, c7) VALUES ('2000-02-29 12:34:56.999999', 'naïve', NULL, -1.5, NULL, '9999-12-31 00:00:01.123');
-- transaction
ROLLBACK;
-- transaction
BEGIN;
-- transaction
UPDATE t1 SET `c7` = NULL, `c6` = NULL WHERE id = 'Łukasz';
-- transaction
SAVEPOINT half;
-- transaction
UPDATE `p5` SET b = 5, a = ' lead' WHERE a IS NOT NULL ORDER BY id LIMIT 2;
-- transaction
UPDATE p5 SET b = 7 WHERE id > 4;
-- transaction
ROLLBACK TO SAVEPOINT half;
-- transaction
COMMIT;
-- update
UPDATE t1 SET `c2` = -9223372036854775808, c3 = -1.5, `c4` = '2000-02-29 12:34:56.999999' WHERE `id` = '';
-- transaction
START TRANSACTION;
-- transaction
DELETE FROM t1 WHERE `id` = '雪';
-- transaction
SAVEPOINT half;
-- transaction
UPDATE `t1` SET c7 = '1970-01-01 00:00:00.000' WHERE id = 'tab	bed';
-- transaction
UPDATE t1 SET c4 = NULL WHERE id = '12';
-- transaction
ROLLBACK TO SAVEPOINT half;
-- transaction
COMMIT;
-- lenient retype
SET SESSION sql_mode = '';
-- lenient retype
ALTER TABLE `t1` MODIFY COLUMN `c2` VARCHAR(12) DEFAULT ' lead' AFTER c4;
-- lenient retype
SET SESSION sql_mode = DEFAULT;
-- transaction
BEGIN;
-- transaction
ROLLBACK;
