package binlake.hbase;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import org.apache.avro.Schema;
import org.apache.avro.SchemaBuilder;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.EncoderFactory;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;

/** One cell as Avro without a header, by the schema of hbase-connectors' Kafka proxy. */
final class CellEvent {
  private static final Schema SCHEMA = SchemaBuilder.record("HBaseKafkaEvent")
      .namespace("org.apache.hadoop.hbase.kafka").fields()
      .requiredBytes("key").requiredLong("timestamp").requiredBoolean("delete").requiredBytes("value")
      .requiredBytes("qualifier").requiredBytes("family").requiredBytes("table").endRecord();

  private CellEvent() {}

  static byte[] encode(String table, Cell cell) throws IOException {
    GenericRecord event = new GenericData.Record(SCHEMA);
    event.put("key", ByteBuffer.wrap(CellUtil.cloneRow(cell)));
    event.put("timestamp", cell.getTimestamp());
    event.put("delete", CellUtil.isDelete(cell));
    event.put("value", ByteBuffer.wrap(CellUtil.cloneValue(cell)));
    event.put("qualifier", ByteBuffer.wrap(CellUtil.cloneQualifier(cell)));
    event.put("family", ByteBuffer.wrap(CellUtil.cloneFamily(cell)));
    event.put("table", ByteBuffer.wrap(table.getBytes(StandardCharsets.UTF_8)));
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    BinaryEncoder encoder = EncoderFactory.get().binaryEncoder(bytes, null);
    new GenericDatumWriter<GenericRecord>(SCHEMA).write(event, encoder);
    encoder.flush();
    return bytes.toByteArray();
  }
}
