CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20));
INSERT INTO t VALUES (11,'x'),(12,'y'),(13,'z');

-- the connector takes its snapshot here

create /* gh-ost */ table `_t_ghc` (id bigint unsigned auto_increment, last_update timestamp not null DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, hint varchar(64) charset ascii not null, value varchar(4096) charset ascii not null, primary key(id), unique key hint_uidx(hint)) auto_increment=256;
insert /* gh-ost */ into `_t_ghc` (id, hint, value) values (2, 'state', 'GhostTableMigrated');
create /* gh-ost */ table `_t_gho` like t;
alter /* gh-ost */ table `_t_gho` drop primary key, add column nid int not null auto_increment first, add primary key (nid), add unique key (id);
insert /* gh-ost t */ ignore into `_t_gho` (id, a) (select id, a from t where id < 13 lock in share mode);
insert /* gh-ost */ into `_t_ghc` (hint, value) values ('heartbeat', '2') on duplicate key update last_update=NOW(), value=VALUES(value);
UPDATE t SET a='w' WHERE id=11;
replace /* gh-ost t */ into `_t_gho` (id, a) values (11, 'w');
insert /* gh-ost t */ ignore into `_t_gho` (id, a) (select id, a from t where id >= 13 lock in share mode);
create /* gh-ost */ table `_t_del` (id int auto_increment primary key) engine=InnoDB comment='ghost-cut-over-sentry';
drop /* gh-ost */ table if exists `_t_del`;
rename /* gh-ost */ table t to `_t_del`, `_t_gho` to t;
drop /* gh-ost */ table if exists `_t_ghc`;
INSERT INTO t (id, a) VALUES (14,'later');
UPDATE `_t_del` SET a='old' WHERE id=12;
