package binlake.hbase;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.file.Path;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.io.ImmutableBytesWritable;
import org.apache.hadoop.hbase.mapreduce.ResultSerialization;
import org.apache.hadoop.io.SequenceFile;
import org.apache.hadoop.io.serializer.WritableSerialization;

/** Scans of all versions, as JSON lines or as a sequence file. */
final class Scans {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final int ROWS_AT_A_TIME = 100;

  private Scans() {}

  /**
   * Prints {"row": ..., "cells": [[family, qualifier, timestamp, value], ...]} a row; a raw scan has masked cells and
   * markers too, and the cell's kind after the timestamp. Returns the number of rows.
   */
  static long print(Table table, JsonNode request, PrintStream out) throws IOException {
    boolean raw = request.get("raw").asBoolean();
    long rows = 0;
    try (ResultScanner scanner = table.getScanner(all().setRaw(raw))) {
      for (Result row : scanner) {
        out.println(line(row, raw));
        rows++;
      }
    }
    return rows;
  }

  private static ObjectNode line(Result row, boolean raw) {
    ObjectNode line = JSON.createObjectNode();
    line.put("row", row.getRow());
    ArrayNode cells = line.putArray("cells");
    for (Cell cell : row.rawCells()) {
      ArrayNode one = cells.addArray();
      one.add(CellUtil.cloneFamily(cell)).add(CellUtil.cloneQualifier(cell)).add(cell.getTimestamp());
      if (raw) {
        one.add(cell.getType().name());
      }
      one.add(CellUtil.cloneValue(cell));
    }
    return line;
  }

  /** Writes a scan as HBase's Export job does: a sequence file of row keys and results. Returns the number of rows. */
  static long export(Table table, Path file) throws IOException {
    Configuration configuration = new Configuration(table.getConfiguration());
    configuration.setStrings("io.serializations", WritableSerialization.class.getName(),
        ResultSerialization.class.getName());
    long rows = 0;
    try (ResultScanner scanner = table.getScanner(all());
        SequenceFile.Writer writer = SequenceFile.createWriter(configuration,
            SequenceFile.Writer.file(new org.apache.hadoop.fs.Path(file.toUri())),
            SequenceFile.Writer.keyClass(ImmutableBytesWritable.class),
            SequenceFile.Writer.valueClass(Result.class),
            SequenceFile.Writer.compression(SequenceFile.CompressionType.NONE))) {
      for (Result row : scanner) {
        writer.append(new ImmutableBytesWritable(row.getRow()), row);
        rows++;
      }
    }
    return rows;
  }

  private static Scan all() {
    return new Scan().readAllVersions().setCaching(ROWS_AT_A_TIME).setCacheBlocks(false);
  }
}
