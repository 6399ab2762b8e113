#!/bin/bash
# Runs one KRaft node. The address that clients use is known only once the container's port is mapped, so it comes
# late: in $ADVERTISED (host:port), or in the file /advertised, which the starter puts into the running container.
set -eu

for _ in $(seq 600); do
  [ -n "${ADVERTISED:-}" ] && break
  [ -s /advertised ] && ADVERTISED=$(cat /advertised) && break
  sleep 0.1
done
: "${ADVERTISED:?no address to advertise was given within a minute}"

data=/var/lib/kafka
mkdir -p "$data"
# The broker talks to itself through INTERNAL: from inside, the advertised address may not lead back here.
cat > /server.properties <<PROPERTIES
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:9094
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://0.0.0.0:9092,INTERNAL://127.0.0.1:9093,CONTROLLER://127.0.0.1:9094
advertised.listeners=PLAINTEXT://$ADVERTISED,INTERNAL://127.0.0.1:9093
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,INTERNAL:PLAINTEXT
inter.broker.listener.name=INTERNAL
log.dirs=$data
num.partitions=1
auto.create.topics.enable=true
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
log.retention.hours=-1
log.cleaner.dedupe.buffer.size=2097152
num.network.threads=1
num.io.threads=2
background.threads=1
PROPERTIES

log=-Dorg.slf4j.simpleLogger
java_options=(-Xms64m -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1
  "$log.defaultLogLevel=warn" "$log.log.kafka.server.KafkaRaftServer=info" -cp '/opt/kafka/libs/*')
if [ ! -e "$data/meta.properties" ]; then
  java "${java_options[@]}" kafka.tools.StorageTool format -t YmlubGFrZS1lbWJlZGRlZA -c /server.properties
fi
exec java "${java_options[@]}" kafka.Kafka /server.properties
