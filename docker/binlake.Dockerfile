# binlake with all that it needs, and nothing for tests or documentation. docker/build_binlake.sh builds it, also where no
# registry answers; with a registry: docker build -f docker/binlake.Dockerfile -t binlake:0.1.0 .
#
# Both stages stand on one Debian with its Python: a virtual environment is moved from one to the other.
ARG BASE_IMAGE=debian:bookworm-20250520-slim

FROM ${BASE_IMAGE} AS build
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates python3-venv openjdk-17-jdk-headless binutils
# A Java of the modules that Spark and Hadoop use, without windows: 54 MB where Debian's package has 200.
RUN /usr/lib/jvm/java-17-openjdk-*/bin/jlink --output /opt/java --strip-debug --no-man-pages --no-header-files --compress=2 \
    --add-modules java.se,jdk.crypto.ec,jdk.httpserver,jdk.management,jdk.management.agent,jdk.naming.dns,jdk.security.auth,jdk.security.jgss,jdk.unsupported,jdk.zipfs \
 && rm -f /opt/java/lib/libawt_xawt.so /opt/java/lib/libmlib_image.so /opt/java/lib/libsplashscreen.so /opt/java/lib/libfontmanager.so \
 && cp --dereference /etc/ssl/certs/java/cacerts /opt/java/lib/security/cacerts
WORKDIR /opt/binlake
RUN python3 -m venv /opt/binlake/venv
ENV PATH=/opt/binlake/venv/bin:/opt/java/bin:$PATH JAVA_HOME=/opt/java
COPY requirements-build.lock requirements-binlake.lock ./
RUN pip install --no-cache-dir --require-hashes -r requirements-build.lock \
 && pip install --no-cache-dir --require-hashes --no-build-isolation -r requirements-binlake.lock
COPY pyproject.toml README.md LICENSE ./
COPY distributions ./distributions
COPY pipeline ./pipeline
RUN pip install --no-cache-dir --no-deps --no-build-isolation ./distributions/hudilake ./distributions/lakemetastore . \
 && pip uninstall --yes setuptools wheel packaging pip
# Spark's Kafka connector is kept in the image: a container needs no way to Maven.
ENV BINLAKE_CACHE=/opt/binlake/cache
RUN python -c "from binlake.stream.spark.jars import kafka_connector; kafka_connector()" && chmod -R g=u cache
COPY docker/slim_environment.sh ./
RUN bash slim_environment.sh /opt/binlake/venv

FROM ${BASE_IMAGE}
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates python3 tini \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/cache/debconf/* /usr/share/doc /usr/share/man /usr/lib/python3*/lib2to3 /usr/lib/python3*/pydoc_data
COPY --from=build /opt/java /opt/java
COPY --from=build /opt/binlake/venv /opt/binlake/venv
# Any user of the group 0 may run the image: a cluster may choose one (OpenShift). 185 is the user of Spark's own image.
COPY --from=build --chown=185:0 /opt/binlake/cache /opt/binlake/cache
COPY jobs /opt/binlake/jobs
COPY docker/binlake_entry.sh /opt/binlake/entry.sh
COPY docker/supervise.py /opt/binlake/supervise.py
RUN useradd --uid 185 --gid 0 --create-home binlake \
 && ln -s "$(/opt/binlake/venv/bin/python -c 'import pyspark; print(*pyspark.__path__)')" /opt/spark \
 && ln -s /opt/binlake/cache/jars/spark-kafka-*/*.jar /opt/spark/jars/ \
 && mkdir -p /lake /opt/binlake/work && chown binlake:0 /lake /opt/binlake/work && chmod g=u /lake /opt/binlake/work /home/binlake /etc/passwd
ENV PATH=/opt/binlake/venv/bin:/opt/java/bin:$PATH JAVA_HOME=/opt/java SPARK_HOME=/opt/spark BINLAKE_CACHE=/opt/binlake/cache \
    LANG=C.UTF-8 PYTHONUNBUFFERED=1 NUMBA_CACHE_DIR=/tmp/binlake-numba
# This Java cannot keep Spark's classes, since it has no archive of its own (100 MB); the entry says so, and nothing tries.
RUN python -B -c "from binlake.stream.spark.session import prepare_spark; prepare_spark()" 2> /dev/null \
 && find /opt/binlake/cache -user root -exec chown 185:0 {} + -exec chmod g=u {} +
WORKDIR /opt/binlake/work
USER 185
VOLUME /lake
EXPOSE 9108 9083 9084 9109
ENTRYPOINT ["/usr/bin/tini", "--", "/bin/bash", "/opt/binlake/entry.sh"]
