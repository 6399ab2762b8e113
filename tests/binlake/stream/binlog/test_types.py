"""Every type with its extreme values, its nulls and what no calendar has: the lake has what the server has."""

from __future__ import annotations

from pathlib import Path

from embedded.mariadb import EmbeddedMariaDB
from tests.binlake.stream.binlog.followed import FollowedDatabase

#: Type -> values as SQL.
VALUES = {
    "tinyint": ["-128", "127"],
    "tinyint unsigned": ["255", "0"],
    "smallint": ["-32768", "32767"],
    "smallint unsigned": ["65535"],
    "mediumint": ["-8388608", "8388607"],
    "mediumint unsigned": ["16777215"],
    "int": ["-2147483648", "2147483647"],
    "int unsigned": ["4294967295"],
    "bigint": ["-9223372036854775808", "9223372036854775807"],
    "bigint unsigned": ["18446744073709551615", "0"],
    "float": ["0.1", "-3.4e38", "1.17549435e-38"],
    "double": ["0.1", "-1.7976931348623157e308", "5e-324"],
    "decimal(5,5)": ["-0.99999", "0.00001"],
    "decimal(20,5)": ["-123456789012345.67891", "0"],
    "decimal(38,10)": ["-9999999999999999999999999999.9999999999"],
    "decimal(65,30)": ["-12345678901234567890123456789012345.123456789012345678901234567890"],
    "bit(1)": ["b'1'", "b'0'"],
    "bit(10)": ["b'1000000001'"],
    "bit(64)": ["~0"],
    "year": ["0", "1901", "2155"],
    "date": ["'0001-01-01'", "'9999-12-31'", "'0000-00-00'", "'2024-00-10'"],
    "time": ["'-838:59:59'", "'838:59:59'", "'-00:00:01'"],
    "time(1)": ["'-12:34:56.7'"],
    "time(6)": ["'-00:00:00.000001'", "'-12:34:56.789012'", "'838:59:59'"],
    "datetime": ["'1000-01-01 00:00:00'", "'9999-12-31 23:59:59'", "'0000-00-00 00:00:00'"],
    "datetime(3)": ["'2024-02-29 23:59:59.999'", "'2024-00-10 01:02:03.004'"],
    "datetime(6)": ["'0001-01-01 00:00:00.000001'"],
    "timestamp": ["'1970-01-01 00:00:01'", "'2038-01-19 03:14:07'", "'0000-00-00 00:00:00'"],
    "timestamp(6)": ["'2024-02-29 23:59:59.999999'"],
    "char(5)": ["'é€'", "''"],
    "char(200)": ["REPEAT('€', 200)"],
    "varchar(300)": ["REPEAT('😀', 300)", "'a\\\\\"\\n\\0'"],
    "varchar(10) character set latin1": ["'€ä'", "CONVERT(UNHEX('818D8F909D') USING latin1)"],
    "varchar(10) character set utf16": ["'€😀'"],
    "varchar(10) character set cp1251": ["'жЯ'"],
    "text": ["REPEAT('x', 65535)"],
    "longtext": ["REPEAT('y', 100000)"],
    "binary(4)": ["UNHEX('00FF0000')", "'a'"],
    "varbinary(300)": ["REPEAT(UNHEX('FE00'), 150)"],
    "blob": ["UNHEX('000102FF')", "''"],
    "enum('a','b,c','it''s')": ["'b,c'", "3", "0"],
    "set('x','y','z')": ["'x,z'", "''"],
    "json": ["'{\"a\": [1, 2.50, null]}'"],
    "point": ["POINT(1, -2.5)"],
    "geometry": ["ST_GeomFromText('POLYGON((0 0,1 0,1 1,0 0))', 4326)"],
}


def test_every_type(server: EmbeddedMariaDB, tmp_path: Path) -> None:
    followed = FollowedDatabase(server, tmp_path, "kinds")
    columns = ", ".join(f"c{number} {kind} NULL" for number, kind in enumerate(VALUES))
    followed.execute(f"CREATE TABLE t (id INT PRIMARY KEY, {columns})", "INSERT INTO t (id) VALUES (0)")
    rows = max(map(len, VALUES.values()))
    for row in range(rows):
        cells = ", ".join(values[row % len(values)] for values in VALUES.values())
        followed.execute(f"INSERT IGNORE INTO t VALUES ({row + 1}, {cells})")
    followed.execute("UPDATE t SET c0 = 7 WHERE id = 2", "DELETE FROM t WHERE id = 3")
    events = followed.apply()
    assert sum(table.quarantined for event in events for table in event.tables) == 0
    followed.check("t")
