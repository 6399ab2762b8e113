# binlake with all it needs: docker build -f docker/binlake.Dockerfile -t binlake .
FROM python:3.11.13-slim-bookworm

RUN apt-get update \
 && apt-get install -y --no-install-recommends openjdk-17-jre-headless procps \
 && rm -rf /var/lib/apt/lists/*

WORKDIR /opt/binlake
COPY requirements-build.lock requirements.lock ./
RUN pip install --no-cache-dir --require-hashes -r requirements-build.lock \
 && pip install --no-cache-dir --require-hashes --no-build-isolation -r requirements.lock
COPY pyproject.toml README.md LICENSE ./
COPY distributions ./distributions
COPY pipeline ./pipeline
COPY jobs ./jobs
COPY docker/supervise.py ./
RUN pip install --no-cache-dir --no-deps --no-build-isolation ./distributions/hudilake ./distributions/lakemetastore .

# Spark's Kafka connector and the archive of Spark's classes are kept in the image: a container needs no way to Maven, and
# starts at once.
ENV BINLAKE_CACHE=/opt/binlake/cache
RUN python -c "from binlake.stream.spark.session import prepare_spark; prepare_spark()"

RUN useradd --uid 1000 --create-home binlake && mkdir /lake && chown binlake /lake
USER binlake
VOLUME /lake
EXPOSE 9108 9083 9084 9109
ENTRYPOINT ["binlake"]
