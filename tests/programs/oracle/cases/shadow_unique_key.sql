CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20), b INT);
INSERT INTO t VALUES (1,'x',10),(2,'x',20),(3,'z',30),(4,'z',40),(5,'v',50);

-- the connector takes its snapshot here

CREATE TABLE `_t_new` (id INT PRIMARY KEY, a VARCHAR(20), b INT);
ALTER TABLE `_t_new` ADD UNIQUE KEY (a);
CREATE TRIGGER pt_osc_t_del AFTER DELETE ON t FOR EACH ROW DELETE IGNORE FROM `_t_new` WHERE `_t_new`.id <=> OLD.id;
CREATE TRIGGER pt_osc_t_ins AFTER INSERT ON t FOR EACH ROW REPLACE INTO `_t_new` (id,a,b) VALUES (NEW.id,NEW.a,NEW.b);
INSERT LOW_PRIORITY IGNORE INTO `_t_new` (id,a,b) SELECT id,a,b FROM t WHERE id <= 3 LOCK IN SHARE MODE /*pt-online-schema-change 7 copy nibble*/;
DELETE FROM t WHERE id=5;
INSERT INTO t VALUES (6,'v',60);
INSERT LOW_PRIORITY IGNORE INTO `_t_new` (id,a,b) SELECT id,a,b FROM t WHERE id > 3 LOCK IN SHARE MODE /*pt-online-schema-change 7 copy nibble*/;
RENAME TABLE t TO `_t_old`, `_t_new` TO t;
DROP TABLE IF EXISTS `_t_old`;
UPDATE t SET b=9 WHERE id=1;
