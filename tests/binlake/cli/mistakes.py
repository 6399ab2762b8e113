"""Typical mistakes of a newcomer: the command line, its exit code, and what the line of the error says."""

from __future__ import annotations

from typing import NamedTuple

HEAD = "name: shop\nlake: {uri: '{dir}/lake'}\nkafka: {bootstrap_servers: '127.0.0.1:1', topics: [s.shop.a]}\n"


class SettingsMistake(NamedTuple):
    """A wrong settings file, which ``binlake tables`` refuses with exit code 2.

    ``text``: of the file; ``{dir}`` stands for a directory. ``says``: what the line of the error holds.
    """

    name: str
    text: str
    says: str


def _lake(uri: str) -> str:
    return HEAD.replace("{uri: '{dir}/lake'}", uri)


def _kafka(servers: str) -> str:
    return HEAD.replace("127.0.0.1:1", servers)


SETTINGS: tuple[SettingsMistake, ...] = (
    SettingsMistake("syntax", "name: shop\nkafka: {topics: [a\n", "is not YAML: expected ',' or ']'"),
    SettingsMistake("tabs", "name: shop\nlake:\n\turi: x\n", r"is not YAML: found character '\t'"),
    SettingsMistake("a list", "- a\n", "(whole file): must be a mapping"),
    SettingsMistake("given twice", HEAD + "name: other\n", "name: is given twice (line 4)"),
    SettingsMistake("name", HEAD.replace("shop\nlake", "my shop\nlake"), "name: must match"),
    SettingsMistake(
        "in no section", HEAD + "trigger_interval: 3\n", "unknown setting; did you mean batch.trigger_interval_ms?"
    ),
    SettingsMistake("unknown", HEAD + "bacth: {}\n", "bacth: unknown setting; did you mean batch? (line 4)"),
    SettingsMistake("a text for a number", HEAD + "batch: {max_events: many}\n", "must be a whole number (line 4)"),
    SettingsMistake("unset variable", _lake("{uri: '${env:BINLAKE_NO_SUCH}'}"), "BINLAKE_NO_SUCH is not set (line 2)"),
    SettingsMistake("relative lake", _lake("{uri: lake}"), "lake.uri: must not be relative"),
    SettingsMistake("a file as lake", _lake("{uri: '{dir}/plain'}"), "a file is where a directory should be"),
    SettingsMistake("S3 option", _lake("{uri: 's3://b/l', options: {acces_key: x}}"), "'acces_key' is not valid"),
    SettingsMistake("scheme", _lake("{uri: 'ftp://host/lake'}"), "no storage has this scheme [scheme=ftp]"),
    SettingsMistake(
        "regexp", HEAD.replace("topics: [s.shop.a]", "topic_pattern: 's[.'"), "is not a regular expression"
    ),
    SettingsMistake(
        "topics twice", HEAD.replace("topics:", "topic_pattern: 's.*', topics:"), "exactly one of topics and topic_pat"
    ),
    SettingsMistake("format", HEAD + "source: {format: debesium}\n", "source.format: must be one of 'auto'"),
    SettingsMistake("memory", HEAD + "spark: {driver_memory_mb: 64}\n", "spark.driver_memory_mb: must be ≥ 512"),
    SettingsMistake("master", HEAD + "spark: {master: 'lokal[2]'}\n", "spark.master: lokal[2] is no Spark master"),
    SettingsMistake(
        "key", HEAD + "source: {schemas: {shop.a: {columns: {id: bigint}, key: [idd]}}}\n", "no such column: idd"
    ),
    SettingsMistake(
        "a key's column twice",
        HEAD + "tables: {defaults: {key: [id, id]}}\n",
        "tables.defaults.key: each column can be named once: id, id (line 4)",
    ),
    SettingsMistake(
        "owned property", HEAD.replace("topics:", "properties: {isolation.level: x}, topics:"), "may not be set here"
    ),
)


#: A stream that reads the binlog of a server at which nothing listens.
BINLOG = (
    "name: shop\nlake: {uri: '{dir}/nothing'}\n"
    "source: {database: {host: 127.0.0.1, port: 1, user: x}, mysql: {start: now}}\n"
)
SETTINGS += (
    SettingsMistake("Kafka and a binlog", HEAD + BINLOG.splitlines()[2], "source.mysql"),
    SettingsMistake("no source", HEAD.partition("kafka")[0], "kafka"),
    SettingsMistake("a binlog of no server", BINLOG.replace("host: 127.0.0.1, ", ""), "source: mysql needs"),
    SettingsMistake("start", BINLOG.replace("start: now", "start: yesterday"), "source.mysql.start: must"),
    SettingsMistake("server id", BINLOG.replace("start: now", "server_id: 0"), "source.mysql.server_id: must be ≥ 1"),
    SettingsMistake("a broker's port", _kafka("broker-1"), "kafka.bootstrap_servers: broker 1 of 1 is not host:port"),
    SettingsMistake("an address of the web", _kafka("http://b:9092"), "broker 1 of 1 is not host:port"),
    SettingsMistake("port", _kafka("b:99092"), "broker 1 of 1 is not host:port"),
    SettingsMistake("a comma at the end", _kafka("a:9092, b:9092,"), "broker 3 of 3 is not host:port"),
    SettingsMistake("semicolons", _kafka("a:9092;b:9092"), "write commas between several"),
    SettingsMistake("a colon in a relative lake", _lake("{uri: 'my:lake'}"), "lake.uri: must not be relative"),
    SettingsMistake("waiting", HEAD.replace("topics:", "wait_seconds: long, topics:"), "kafka.wait_seconds: must be"),
)


class Mistake(NamedTuple):
    """A wrong command line.

    ``words``: {conf} is the settings file of a lake with the tables shop.a and shop.b, {none} that of an empty lake,
    {dir} a directory. ``code``: the exit code. ``says``: what the line of the error holds.
    """

    words: str
    code: int
    says: str


_UNKNOWN = "the lake has no such table [table=shop.aa]. Next: did you mean shop.a or shop.b?"
_UNMET = "the stream has met no such table [table=shop.aa]. Next: did you mean shop.a or shop.b?"
_NOT_HUDI = "Hudi table at this path [path=file://{dir}/empty]. Next: check the path"
_NEWER = "hoodie.table.version is 10, which binlake does not support"
_RECORD = "this is not the name of a quarantined record"
_ON_COMMAND_LINE = "a password does not belong on a command line, which others can read. Next: set the variable"
_NO_DATABASE = "the settings do not name the source's database"

COMMANDS = (
    Mistake("runn {conf}", 2, "No such command 'runn'. Next: did you mean 'run'? `binlake --help`"),
    Mistake("run {conf} --onec", 2, "No such option: --onec. Next: did you mean --once? `binlake run --help`"),
    Mistake("run", 2, "Missing argument 'CONF'. Next: `binlake run --help`"),
    Mistake("table", 2, "no command is given"),
    Mistake("--json tables {conf}", 2, "No such option: --json. Next: write an option of a command behind its name"),
    Mistake("--verson", 2, "No such option: --verson. Next: did you mean --version?"),
    Mistake("status {conf} --jsn", 2, "No such option: --jsn. Next: did you mean --json?"),
    Mistake("table drop {conf} shop.a", 2, "No such command 'drop'. Next: name one of pause, resume, "),
    Mistake("run {dir}/conf.yml", 2, "Next: did you mean {dir}/conf.yaml?"),
    Mistake("query {conf} 'SELECT 1 FROM t'", 2, "this is a file, and no table"),
    Mistake("query {dir}/lake 'SELECT 1 FROM t'", 2, "Next: did you mean {dir}/lake/shop/a or {dir}/lake/shop/b?"),
    Mistake("inspect {dir}/lake/shop", 2, "Next: did you mean {dir}/lake/shop/a or {dir}/lake/shop/b?"),
    Mistake("quarantine {conf}", 2, "Next: name one of list, show, replay; `binlake quarantine --help`"),
    Mistake("why {conf} shop.a 1 2", 2, "unexpected extra argument"),
    Mistake("-v -q tables {conf}", 2, "--verbose and --quiet exclude each other"),
    Mistake("run {dir}/none.yaml", 2, "cannot read the settings file: No such file or directory"),
    Mistake("run {dir}", 2, "cannot read the settings file: Is a directory"),
    Mistake("compact {dir}/empty", 2, "cannot read the settings file: Is a directory"),
    Mistake("run {dir}/binary", 2, "cannot read the settings file: it is not text in UTF-8"),
    Mistake("run {conf} --log-json {dir}/none/log", 2, "cannot write the log"),
    *(
        Mistake(f"{words} {{conf}} shop.aa{more}", 2, _UNKNOWN)
        for words, more in (
            ("tables", ""),
            ("audit", ""),
            ("inspect --conf", ""),
            ("query --conf", " 'SELECT 1 FROM t'"),
            ("explain --conf", " 'SELECT 1 FROM t'"),
            ("fsck --conf", ""),
            ("repair --conf", ""),
            ("layout --conf", ""),
            ("compact", ""),
            ("cluster", ""),
            ("clean", ""),
            ("archive", ""),
            ("rebucket", " --buckets 4"),
            ("restore", " 1 --yes"),
            ("savepoint create", ""),
            ("why", " 1"),
            ("cells", ""),
            ("backfill", " --from {dir}/some.csv --columns owner --in-process"),
        )
    ),
    Mistake("query --conf {conf} 'SELECT * FROM shop.aa'", 2, _UNKNOWN),
    *(Mistake(f"table {words} {{conf}} shop.aa", 2, _UNMET) for words in ("pause", "resume", "resync", "forget")),
    Mistake("table pause {none} shop.a", 2, "the stream has no ledger yet"),
    Mistake("why {none} shop.a 1", 2, "Next: check lake.uri: it has no table of this stream"),
    *(Mistake(f"{words} {{dir}}/empty", 2, _NOT_HUDI) for words in ("inspect", "fsck", "query")),
    *(Mistake(f"{words} {{dir}}/newer", 69, _NEWER) for words in ("inspect", "fsck", "query")),
    Mistake("inspect {dir}/none", 2, "no such directory [path={dir}/none]"),
    Mistake("inspect {dir}/damaged", 66, "hoodie.properties names no table"),
    Mistake("query {lake}/shop/a 'SELEC * FROM t'", 2, "the query cannot be parsed"),
    *(
        Mistake(f'query {{lake}}/shop/a "{query}"', 2, f"the query cannot be parsed: {why} [query=")
        for query, why in (
            ("SELECT id FROM t WHERE", "syntax error at end of input"),
            ("SELECT id FROM t WHERE id = = 3", 'syntax error at or near "="'),
            ("SELECT 1 FROM t JOIN", "syntax error at end of input"),
            ("SELECT CASE WHEN id THEN FROM t", 'syntax error at or near "FROM"'),
        )
    ),
    Mistake("query {lake}/shop/a 'EXPLAIN SELECT 1 FROM t'", 2, "the text is not one SELECT statement [query=EXPLAIN"),
    Mistake(
        "query {lake}/shop/a 'SELECT * FROM t WHERE owner = 5'",
        2,
        "when casting from source column owner [query=",
    ),
    Mistake("query {lake}/shop/a 'SELECT nope FROM t'", 2, 'Referenced column "nope" not found'),
    Mistake("query {lake}/shop/a 'SELECT * FROM u'", 2, "the query names tables that are not given: u"),
    Mistake("query {lake}/shop/a 'DELETE FROM t'", 2, "the text is not one SELECT statement"),
    Mistake("query {lake}/shop/a 'SELECT * FROM t' --as-of yesterday", 2, "'yesterday' is not a moment"),
    Mistake("query {lake}/shop/a SELECT 1", 2, "there are more words than a table and its SQL. Next: quote the SQL"),
    Mistake("why {conf} shop.a x", 2, "'x' is no value of column id"),
    Mistake("restore {conf} shop.a 20200101000000000 --yes", 2, "there is no completed write of that requested time"),
    Mistake("restore {conf} shop.a weekly --yes", 2, "no savepoint has that comment [comment=weekly]"),
    Mistake("restore {conf} shop.a {commit}", 1, "nothing was changed. Next: give the option that answers it"),
    Mistake("savepoint delete {conf} shop.a weekly", 2, "there is no such savepoint [instant=weekly]"),
    Mistake("savepoint create {conf} shop.a 20200101000000000", 2, "there is no completed commit of that requested"),
    Mistake("quarantine list {conf} --since yesterday", 2, "this is not a time [time=yesterday]"),
    Mistake("quarantine list {conf} nonsense", 2, _RECORD),
    Mistake("quarantine replay {conf} s.shop.a/0:x", 2, _RECORD),
    *(
        Mistake(f"quarantine {words} {{conf}} {option}", 2, says)
        for words in ("list", "show", "replay", "replay --dry-run")
        for option, says in (
            ("--reason no_shema", "no such reason [reason=no_shema]. Next: did you mean no_schema"),
            ("--table shop.aa", "no such table [table=shop.aa]. Next: did you mean shop.a or shop.b?"),
            ("s.shop.a/0:99", "no such record [record=s.shop.a/0:99]. Next: binlake quarantine list shows"),
        )
    ),
    Mistake("derive {conf} shop.aa", 2, "derive no such wide table [table=shop.aa]. Next: tables.cells has none"),
    Mistake("revert {conf} --transaction x --table shop.aa", 2, _UNKNOWN),
    Mistake("verify {conf} shop.aa", 2, _NO_DATABASE),
    Mistake("revert {conf}", 2, "nothing is selected"),
    Mistake("revert {conf} --since yesterday", 2, "this is not a time [time=yesterday]"),
    Mistake("revert {conf} --from-position foo", 2, "this is no position [position=foo]"),
    Mistake("verify {conf}", 2, _NO_DATABASE),
    Mistake("replay {conf} --in-process", 2, "the place of the dump is not known. Next: give --from"),
    Mistake("replay {conf} --from {dir}/none --in-process", 2, "there is nothing at the dump's place"),
    Mistake("replay {conf} --from {dir} --hour tomorrow", 2, "this is not a time [time=tomorrow]"),
    Mistake("replay {conf} --scan orders --from {dir}", 2, "no entry of tables.cells has the source default.orders"),
    Mistake(
        "backfill {conf} shop.a --from {dir}/none.csv --columns owner --in-process", 2, "there is no such input [path="
    ),
    Mistake(
        "backfill {conf} shop.a --from {dir}/some.csv --columns owner --in-process",
        2,
        "the input has no column 'owner'; it has id, x",
    ),
    Mistake("dump {none} --once", 2, "dump.uri is not set"),
    Mistake("init {dir}/new.yaml", 2, "--kafka is missing. Next: give --kafka; at a terminal it is asked for"),
    Mistake(
        "init {conf} --kafka 127.0.0.1:1", 2, "the file is there already [path={dir}/conf.yaml]. Next: give another"
    ),
    Mistake("init {dir}/new.yaml --kafka 127.0.0.1:1 --property acks", 2, "this is no property [property=acks]"),
    Mistake("init {dir}/new.yaml --kafka 127.0.0.1:1 --provider aws", 2, "'aws' is not one of 'self', 'rds'"),
    Mistake("init {dir} --kafka 127.0.0.1:1 --force", 2, "this is a directory [path={dir}]"),
    Mistake("init {dir}/x.yaml --kafka 127.0.0.1:1 --connector {dir}/x.yaml", 2, "are the same file"),
    Mistake(
        "init {dir}/x.yaml --kafka http://h:1 --lake l",
        2,
        "the options make wrong settings: kafka.bootstrap_servers: broker 1 of 1",
    ),
    Mistake("init {dir}/x.yaml --kafka h --lake l", 2, "Next: correct the options"),
    Mistake("init {dir}/x.yaml --kafka h:1 --lake ftp://l", 2, "no storage has this scheme [scheme=ftp]"),
    Mistake("init {dir}/x.yaml --kafka h:1 --lake s3:/b/lake", 2, "Next: write s3://bucket/path"),
    Mistake("init {dir}/x.yaml --kafka h:1 --lake l --name 'my shop'", 2, "name: must match"),
    Mistake("init {dir}/x.yaml --kafka h:1 --lake l --prefix 'my shop'", 2, "no topic has such a prefix"),
    Mistake("init {dir}/no/new.yaml --kafka 127.0.0.1:1", 2, "there is no such directory [path={dir}/no]"),
    Mistake("init {dir}/new.yaml --mysql root@127.0.0.1:1/shop --lake l", 75, "Next: see that a server listens there"),
    Mistake("init {dir}/new.yaml --mysql root@:3306/shop --lake l", 2, "names no database [mysql=root@:3306/shop]"),
    Mistake("init {dir}/new.yaml --mysql root@127.0.0.1:99999/shop --lake l", 2, "this names no database"),
    Mistake("init {dir}/new.yaml --mysql mysql://root@h/shop --lake l", 2, "this names no database"),
    Mistake("init {dir}/new.yaml --mysql root:secret@127.0.0.1/shop --lake l", 2, _ON_COMMAND_LINE),
    Mistake("load {conf}", 2, _NO_DATABASE),
    Mistake("load {conf} --connections 0", 2, "Input should be greater than or equal to 1"),
    Mistake("load {binlog}", 75, "Next: see that a server listens there, or correct the host and the port"),
    Mistake("verify {binlog}", 75, "the source's database cannot be reached"),
    Mistake("table resync {conf} shop.a", 2, "do not name the connector's topics of signals and notifications"),
    Mistake("table resync {conf} shop.a --from-source", 2, _NO_DATABASE),
    Mistake("changes shop.aa --conf {conf} --since earliest", 2, _UNKNOWN),
    Mistake("changes shop.a --conf {conf}", 2, "no begin is given. Next: give --since earliest"),
    Mistake("changes shop.a --conf {conf} --since yesterday", 2, "'yesterday' is not a moment"),
    Mistake("changes shop.a --conf {conf} --since earliest --follow", 2, "a table cannot follow"),
    Mistake("changes shop.a --conf {conf} --since earliest --columns id,ownr", 2, "did you mean owner?"),
    Mistake("changes shop.a --conf {conf} --since earliest --position {dir}/no/file", 2, "this is no place for one"),
    Mistake("changes shop.a --conf {conf} --position {dir}/empty", 2, "this is no place for one [path={dir}/empty]"),
    Mistake("changes shop.a --conf {conf} --position {dir}/some.csv", 2, "this is no position of changes: 'id,x"),
    Mistake("changes shop.a", 2, "Next: give a path or URI, or --conf with database.table"),
    Mistake("query --conf {conf} --at nonsense 'SELECT * FROM shop.a'", 2, "batch.transaction_consistent is off"),
    Mistake("query --at nonsense {lake}/shop/a 'SELECT 1 FROM t'", 2, "is for all tables of a stream at once"),
    Mistake("query --conf {conf} 'SELECT * FROM shop.A'", 2, "[table=shop.A]. Next: did you mean shop.a?"),
    Mistake("query --conf {conf} 'SELECT * FROM a'", 2, "did you mean shop.a or shop.b?"),
    Mistake("query {lake}/shop/a", 2, "the SQL is missing"),
    Mistake("query {lake}/shop/a 'SELECT 1 FROM t' --memory much", 2, "'much' is not an amount of memory"),
    Mistake("query {lake}/shop/a 'SELECT 1 FROM t' --after never", 2, "'never' is not a moment"),
    Mistake("console {dir}/none.yaml", 2, "cannot read the settings file"),
    Mistake("console {conf} --port 99999", 2, "Input should be less than or equal to 65535"),
    Mistake("console {conf} --port {port}", 2, "Next: choose another --port or --host"),
    Mistake("console {conf} --host no.such.host.invalid", 2, "cannot listen"),
    Mistake("console {conf} --token-file {dir}/none", 2, "the token cannot be read"),
    Mistake("lineage {conf} shop.aa", 2, _UNKNOWN),
    Mistake(
        "lineage {conf} shop.aa --source", 2, "has seen this table of the source [table=shop.aa]. Next: did you mean"
    ),
    Mistake(
        "lineage {none} shop.a --source", 2, "has seen this table of the source [table=shop.a]. Next: wait for its"
    ),
    Mistake("status {conf} shop.aa --no-kafka", 2, _UNKNOWN),
    Mistake("metastore push {conf}", 2, "No such command"),
    Mistake("metastore serve {dir}/none.yaml", 2, "cannot read the settings file"),
)
