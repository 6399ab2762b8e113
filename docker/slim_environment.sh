#!/bin/bash
# Takes out of a virtual environment what binlake does not use: slim_environment.sh DIRECTORY. The image runs without it.
set -eu
python=$1/bin/python
cd "$1"/lib/python3*/site-packages

# Tests of other packages, sources of their compiled modules, types for checkers, and symbols for debuggers.
find . -type d -name tests -prune -exec rm -rf {} +
rm -rf pyarrow/include numpy/_core/include numpy/f2py numpy/distutils numpy/_core/_simd.*
find . \( -name '*.a' -o -name '*.c' -o -name '*.h' -o -name '*.pxd' -o -name '*.pyi' -o -name '*.pyx' \) -delete
# Where a package has a directory *.libs, its packager changed the libraries, and they do not load once they are stripped.
packed=(-path './numba/*') # links a library that its package does not bring
for libs in *.libs; do packed+=(-o -path "./$libs/*" -o -path "./${libs%.libs}/*"); done
find . -name '*.so*' -type f ! \( "${packed[@]}" \) -exec strip --strip-unneeded {} +

# Arrow's services and its own client of S3 (binlake has another); names that linkers need.
rm -f pyarrow/*arrow_flight* pyarrow/*arrow_python_flight* pyarrow/_flight* pyarrow/*arrow_s3* pyarrow/_s3fs*
rm -f pyarrow/libarrow_python*.so pyarrow/libarrow_python*.so.*.*.*

# A client of schema registries that needs more packages (binlake has its own), code for graphics cards, the client of
# Spark Connect, other forms of what is there, lexers of languages that binlake never shows.
rm -rf confluent_kafka/schema_registry numba/cuda pydantic/v1 pyspark/sql/connect sqlalchemy/dialects/{mssql,oracle}
# PyIceberg, of which the metastore takes the classes of Hive's protocol alone (hive_metastore), and what only it imports.
rm -rf pyiceberg strictyaml fsspec

# Pools of threads on libraries that the image has not (numba takes its own), and a second way to one library.
rm -f numba/np/ufunc/omppool* numba/np/ufunc/tbbpool* zstandard/_cffi*
find pygments/lexers -name '*.py' ! -name '_*' ! -name python.py ! -name special.py ! -name sql.py ! -name data.py ! -name javascript.py -delete

# Compiled modules that few commands import: Python compiles them then.
find sqlalchemy sqlglot hive_metastore pygments -name __pycache__ -prune -exec rm -rf {} +

# Spark's machine learning, graphs, Mesos, Hive, Scala's shell, R and ZooKeeper, and the library of a state store: a stream of
# binlake keeps no state in Spark.
cd pyspark
rm -rf examples data R ml mllib pandas python/test_support
cd jars
rm -f rocksdbjni-* breeze* spire* cats-kernel* algebra_* spark-mllib* spark-graphx* arpack* lapack-* blas-* JTransforms* \
  JLargeArrays* pmml-* mesos-* spark-mesos* scala-compiler* spark-repl* jline-* spark-hive* datanucleus-* derby-* jdo-* \
  javax.jdo-* curator-* zookeeper-* libfb303* libthrift* HikariCP* bonecp* ST4-* antlr-runtime* stax-api* transaction-api* jta-*
rm -f leveldbjni-* jodd-* javolution-* joda-time-* super-csv-* opencsv-* json-1* jpam-* avro-ipc* avro-mapred* \
  commons-dbcp-* commons-pool-* httpclient-* httpcore-* # Hive's and others' that are gone
find . -name 'hive-*' ! -name 'hive-storage-api-*' -delete # ORC needs that one

# Libraries in jars for other machines than this one.
python3 - "$(uname -m)" << 'PROGRAM'
import re, sys, zipfile
from pathlib import Path

machines = {sys.argv[1], {"x86_64": "amd64", "aarch64": "arm64"}.get(sys.argv[1], "")} - {""}
library = re.compile(r"\.(so|dll|dylib|jnilib|a|sl)$")


def is_foreign(name: str) -> bool:
    words = set(re.split(r"[/.]", name.lower()))
    return bool(library.search(name)) and not ("linux" in words and words & machines)


for jar in [*Path().glob("zstd-jni-*.jar"), *Path().glob("snappy-java-*.jar"), *Path().glob("lz4-java-*.jar")]:
    slim = jar.with_suffix(".slim")
    with zipfile.ZipFile(jar) as old, zipfile.ZipFile(slim, "w", zipfile.ZIP_DEFLATED) as new:
        for entry in old.infolist():
            if not is_foreign(entry.filename):
                new.writestr(entry, old.read(entry))
    slim.rename(jar)
PROGRAM

# What is left must load: each library, and what binlake imports.
cd ../..
"$python" -B - << 'PROGRAM'
import ctypes
from pathlib import Path

import pyarrow  # whose libraries are found by those that are loaded after it

for library in Path().rglob("*.so*"):
    ctypes.CDLL(str(library.resolve()))
import binlake.cli, duckdb, hive_metastore.ThriftHiveMetastore, lakemetastore.hive, lakemetastore.service, numba, pandas, pyarrow.dataset, pyarrow.parquet, pyspark.sql.streaming
PROGRAM
