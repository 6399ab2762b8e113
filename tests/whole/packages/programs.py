"""The programs that clean environments run: each is a text, for it runs where nothing of this repository is."""

from __future__ import annotations

#: Creates, writes and reads a table; prints the seconds of the import. Takes the table's path.
TABLE = """
import sys, time
began = time.perf_counter()
import hudilake
seconds = time.perf_counter() - began
import pyarrow as pa

path = sys.argv[1]
schema = pa.schema({"id": pa.int64(), "name": pa.string(), "updated": pa.int64()})
people = hudilake.create_table(path, schema, key="id", order_by="updated", buckets=1)
people.upsert([{"id": 1, "name": "Ada", "updated": 1}, {"id": 2, "name": "Bob", "updated": 1}])
people.upsert([{"id": 2, "name": "Bobby", "updated": 2}])
people.compact()
people.delete([{"id": 1}])
rows = hudilake.open_table(path).scan(["id", "name"]).to_arrow().to_pylist()
assert rows == [{"id": 2, "name": "Bobby"}], rows
try:
    hudilake.open_table(path).scan(filter="id = 2").to_arrow()
except hudilake.ConfigError as error:
    assert "pip install 'hudilake[sql]'" in str(error), error
else:
    raise AssertionError("a condition as SQL text needs an extra")
print(f"import hudilake: {seconds:.3f} s")
"""

#: Makes a database and a table by the Hive protocol, and looks for what the lake's own table became. Takes both ports.
METASTORE = """
import json, sys, time, urllib.request
from hive_metastore import ThriftHiveMetastore
from hive_metastore.ttypes import Database, FieldSchema, SerDeInfo, StorageDescriptor, Table
from thrift.protocol import TBinaryProtocol
from thrift.transport import TSocket, TTransport

thrift, http, place = int(sys.argv[1]), sys.argv[2], sys.argv[3]
transport = TTransport.TBufferedTransport(TSocket.TSocket("127.0.0.1", thrift))
transport.open()
client = ThriftHiveMetastore.Client(TBinaryProtocol.TBinaryProtocol(transport))
client.create_database(Database(name="web", locationUri=f"{place}/web.db", parameters={}))
storage = StorageDescriptor(
    cols=[FieldSchema("a", "int", None)], location=f"{place}/web.db/views",
    inputFormat="org.apache.hadoop.mapred.TextInputFormat",
    outputFormat="org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
    serdeInfo=SerDeInfo(serializationLib="org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe", parameters={}),
    parameters={},
)
names = {"dbName": "web", "tableName": "views", "tableType": "MANAGED_TABLE"}
client.create_table(Table(**names, sd=storage, partitionKeys=[], parameters={}))
assert client.get_table("web", "views").sd.cols[0].name == "a"
until = time.monotonic() + 240
while "people" not in (client.get_all_tables("shop") if "shop" in client.get_all_databases() else []):
    assert time.monotonic() < until, "the lake's table is not registered"
    time.sleep(0.2)
with urllib.request.urlopen(http + "/openapi.json") as answer:
    assert "/v1" in next(iter(json.load(answer)["paths"]))
print("served")
"""

#: Reads tables with the format library alone. Takes pairs: a table's path, and the Arrow file for its rows.
READ = """
import sys
import pyarrow as pa
import hudilake

for path, target in zip(sys.argv[1::2], sys.argv[2::2], strict=True):
    rows = hudilake.open_table(path).scan().to_arrow()
    with pa.OSFile(target, "wb") as file, pa.ipc.new_file(file, rows.schema) as writer:
        writer.write_table(rows)
assert not {"binlake", "lakemetastore", "pyspark"} & set(sys.modules)
"""

#: A module in the place of ours, as a project of its own may have it.
STRANGER = "raise ImportError('a package of the user, which nothing of ours may import')\n"
