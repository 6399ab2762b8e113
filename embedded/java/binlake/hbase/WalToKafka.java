package binlake.hbase;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.UUID;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.replication.BaseReplicationEndpoint;
import org.apache.hadoop.hbase.wal.WAL;
import org.apache.hadoop.hbase.wal.WALEdit;
import org.apache.hadoop.hbase.wal.WALKeyImpl;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A replication endpoint that writes HBase's changes to Kafka. A batch counts as replicated when Kafka has
 * acknowledged all its records; a batch that fails is sent again by HBase, so delivery is at least once.
 *
 * <p>Topics: PREFIX.NAMESPACE.TABLE.wal has one JSON document a WAL entry, PREFIX.NAMESPACE.TABLE.events one Avro
 * record a cell. The configuration of the peer: "bootstrap.servers"; "topic.prefix" (default "hbase"); "formats"
 * (default "wal"; "wal,events" for both); "producer.NAME" for any other setting NAME of Kafka's producer.
 */
public class WalToKafka extends BaseReplicationEndpoint {
  private static final Logger LOG = LoggerFactory.getLogger(WalToKafka.class);
  private static final List<String> FORMATS = Arrays.asList("wal", "events");
  private static final AtomicLong SENT = new AtomicLong();
  private static final String PRODUCER_SETTING = "producer.";

  private KafkaProducer<byte[], byte[]> producer;
  private String prefix;
  private List<String> formats;

  @Override
  public void init(Context context) throws IOException {
    super.init(context);
    Map<String, String> settings = context.getPeerConfig().getConfiguration();
    prefix = settings.getOrDefault("topic.prefix", "hbase");
    formats = Arrays.asList(settings.getOrDefault("formats", "wal").split(","));
    if (!FORMATS.containsAll(formats)) {
      throw new IOException("formats of the peer must be wal, events or wal,events, not " + formats);
    }
    producer = producer(settings);
  }

  private static KafkaProducer<byte[], byte[]> producer(Map<String, String> settings) throws IOException {
    if (!settings.containsKey("bootstrap.servers")) {
      throw new IOException("the peer's configuration lacks bootstrap.servers");
    }
    Properties properties = new Properties();
    properties.put("acks", "all");
    properties.put("linger.ms", "2");
    // A WAL entry is one message: a large cell, or a batch of many rows.
    properties.put("max.request.size", "8000000");
    properties.put("bootstrap.servers", settings.get("bootstrap.servers"));
    settings.forEach((name, value) -> {
      if (name.startsWith(PRODUCER_SETTING)) {
        properties.put(name.substring(PRODUCER_SETTING.length()), value);
      }
    });
    // Kafka looks for its classes in the thread's loader, which need not know them.
    Thread thread = Thread.currentThread();
    ClassLoader before = thread.getContextClassLoader();
    thread.setContextClassLoader(KafkaProducer.class.getClassLoader());
    try {
      return new KafkaProducer<>(properties, new ByteArraySerializer(), new ByteArraySerializer());
    } finally {
      thread.setContextClassLoader(before);
    }
  }

  @Override
  public UUID getPeerUUID() {
    return UUID.nameUUIDFromBytes("binlake-wal-to-kafka".getBytes(StandardCharsets.UTF_8));
  }

  @Override
  public void start() {
    startAsync();
  }

  @Override
  public void stop() {
    stopAsync();
  }

  @Override
  protected void doStart() {
    notifyStarted();
  }

  @Override
  protected void doStop() {
    producer.close();
    notifyStopped();
  }

  @Override
  public boolean replicate(ReplicateContext batch) {
    try {
      List<Future<RecordMetadata>> sent = new ArrayList<>();
      for (WAL.Entry entry : batch.getEntries()) {
        send(entry, sent);
      }
      for (Future<RecordMetadata> one : sent) {
        one.get();
      }
      return true;
    } catch (InterruptedException stop) {
      Thread.currentThread().interrupt();
      return false;
    } catch (ExecutionException | IOException | RuntimeException failed) {
      LOG.warn("a batch did not reach Kafka; HBase sends it again", failed);
      return false;
    }
  }

  private void send(WAL.Entry entry, List<Future<RecordMetadata>> sent) throws IOException {
    List<Cell> cells = new ArrayList<>();
    for (Cell cell : entry.getEdit().getCells()) {
      if (!WALEdit.isMetaEditFamily(cell)) {
        cells.add(cell);
      }
    }
    if (cells.isEmpty()) {
      return;
    }
    String table = entry.getKey().getTableName().getNameAsString();
    String topic = prefix + "." + table.replace(':', '.');
    if (formats.contains("events")) {
      for (Cell cell : cells) {
        sent.add(producer.send(
            new ProducerRecord<>(topic + ".events", CellUtil.cloneRow(cell), CellEvent.encode(table, cell))));
      }
    }
    if (formats.contains("wal")) {
      String key = Long.toString(System.currentTimeMillis() + SENT.getAndIncrement());
      byte[] document = WalDocument.encode((WALKeyImpl) entry.getKey(), entry.getEdit(), cells);
      sent.add(producer.send(new ProducerRecord<>(topic + ".wal", key.getBytes(StandardCharsets.UTF_8), document)));
    }
  }
}
