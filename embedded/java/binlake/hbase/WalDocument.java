package binlake.hbase;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStreamWriter;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.List;
import java.util.TreeSet;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.wal.WALEdit;
import org.apache.hadoop.hbase.wal.WALKeyImpl;
import org.apache.hbase.thirdparty.com.google.gson.stream.JsonWriter;

/** One WAL entry as JSON, in the shape of awslabs' streaming endpoint: byte arrays are base64. */
final class WalDocument {
  private WalDocument() {}

  static byte[] encode(WALKeyImpl key, WALEdit edit, List<Cell> cells) throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (JsonWriter json = new JsonWriter(new OutputStreamWriter(bytes, StandardCharsets.UTF_8))) {
      json.beginObject().name("key");
      write(json, key);
      json.name("edit").beginObject().name("cells").beginArray();
      TreeSet<String> families = new TreeSet<>();
      for (Cell cell : cells) {
        write(json, cell);
        families.add(base64(CellUtil.cloneFamily(cell)));
      }
      json.endArray().name("families").beginArray();
      for (String family : families) {
        json.value(family);
      }
      json.endArray().name("replay").value(edit.isReplay());
      json.name("metafamily").value(base64(WALEdit.METAFAMILY)).endObject().endObject();
    }
    return bytes.toByteArray();
  }

  private static void write(JsonWriter json, WALKeyImpl key) throws IOException {
    json.beginObject();
    json.name("writeTime").value(key.getWriteTime());
    json.name("sequenceId").value(key.getSequenceId());
    json.name("tablename").value(key.getTableName().getNameAsString());
    json.name("nonce").value(key.getNonce());
    json.name("nonceGroup").value(key.getNonceGroup());
    json.name("origLogSeqNum").value(key.getOrigLogSeqNum());
    json.name("encodedRegionName").value(base64(key.getEncodedRegionName()));
    json.name("writeEntry").nullValue();
    json.endObject();
  }

  private static void write(JsonWriter json, Cell cell) throws IOException {
    json.beginObject();
    json.name("qualifier").value(base64(CellUtil.cloneQualifier(cell)));
    json.name("value").value(base64(CellUtil.cloneValue(cell)));
    json.name("type").value(cell.getType().name());
    json.name("family").value(base64(CellUtil.cloneFamily(cell)));
    json.name("timeStamp").value(cell.getTimestamp());
    json.name("row").value(base64(CellUtil.cloneRow(cell)));
    json.endObject();
  }

  private static String base64(byte[] bytes) {
    return Base64.getEncoder().encodeToString(bytes);
  }
}
