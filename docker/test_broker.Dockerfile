# One Kafka broker for tests. The build context holds `libs/` (jars) and `test_broker_entry.sh`; docker/build_test_broker.sh prepares it.
ARG BASE_IMAGE=eclipse-temurin:17-jre
FROM ${BASE_IMAGE}
COPY libs /opt/kafka/libs
COPY test_broker_entry.sh /entry.sh
ENV LANG=C.UTF-8
EXPOSE 9092
ENTRYPOINT ["/bin/bash", "/entry.sh"]
