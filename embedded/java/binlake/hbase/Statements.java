package binlake.hbase;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.client.Append;
import org.apache.hadoop.hbase.client.CheckAndMutate;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Increment;
import org.apache.hadoop.hbase.client.Mutation;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Row;
import org.apache.hadoop.hbase.client.RowMutations;
import org.apache.hadoop.hbase.client.Table;

/** Statements that write, from JSON. */
final class Statements {
  private Statements() {}

  /** Returns whether the statement changed something: false only if the check of a checkAndMutate failed. */
  static boolean apply(Table table, JsonNode statement) throws IOException {
    switch (statement.get("kind").asText()) {
      case "CheckAndMutate":
        return table.checkAndMutate(checked(statement)).isSuccess();
      case "RowMutations":
        table.mutateRow(together(statement));
        return true;
      case "Increment":
        table.increment((Increment) mutation(statement));
        return true;
      case "Append":
        table.append((Append) mutation(statement));
        return true;
      case "Put":
        table.put((Put) mutation(statement));
        return true;
      default:
        table.delete((Delete) mutation(statement));
        return true;
    }
  }

  /** Applies statements of many rows as one batch: HBase writes those of one region as one WAL entry. */
  static int batch(Table table, JsonNode statements) throws IOException, InterruptedException {
    List<Row> rows = new ArrayList<>();
    for (JsonNode statement : statements) {
      rows.add(statement.get("kind").asText().equals("RowMutations") ? together(statement) : mutation(statement));
    }
    table.batch(rows, new Object[rows.size()]);
    return rows.size();
  }

  private static CheckAndMutate checked(JsonNode statement) throws IOException {
    byte[] row = bytes(statement, "row");
    byte[] family = bytes(statement, "family");
    byte[] qualifier = bytes(statement, "qualifier");
    CheckAndMutate.Builder check = CheckAndMutate.newBuilder(row);
    check = statement.get("expected").isNull()
        ? check.ifNotExists(family, qualifier)
        : check.ifEquals(family, qualifier, bytes(statement, "expected"));
    Mutation then = mutation(statement.get("then"));
    return then instanceof Put ? check.build((Put) then) : check.build((Delete) then);
  }

  private static RowMutations together(JsonNode statement) throws IOException {
    RowMutations all = new RowMutations(bytes(statement, "row"));
    for (JsonNode one : statement.get("mutations")) {
      all.add(mutation(one));
    }
    return all;
  }

  private static Mutation mutation(JsonNode statement) throws IOException {
    byte[] row = bytes(statement, "row");
    switch (statement.get("kind").asText()) {
      case "Put":
        return put(new Put(row), statement);
      case "Delete":
        return delete(row, statement);
      case "Increment":
        Increment increment = new Increment(row);
        for (JsonNode cell : statement.get("amounts")) {
          increment.addColumn(bytes(cell, "family"), bytes(cell, "qualifier"), cell.get("amount").asLong());
        }
        return increment;
      case "Append":
        Append append = new Append(row);
        for (JsonNode cell : statement.get("cells")) {
          append.addColumn(bytes(cell, "family"), bytes(cell, "qualifier"), bytes(cell, "value"));
        }
        return append;
      default:
        throw new IllegalArgumentException("no such statement: " + statement.get("kind"));
    }
  }

  private static Put put(Put put, JsonNode statement) throws IOException {
    for (JsonNode cell : statement.get("cells")) {
      put.addColumn(bytes(cell, "family"), bytes(cell, "qualifier"), timestamp(cell), bytes(cell, "value"));
    }
    if (!statement.get("ttl_ms").isNull()) {
      put.setTTL(statement.get("ttl_ms").asLong());
    }
    return put;
  }

  /** Without targets the whole row is deleted, up to the timestamp; "Delete" without one is of the newest version. */
  private static Delete delete(byte[] row, JsonNode statement) throws IOException {
    Delete delete = new Delete(row, timestamp(statement));
    for (JsonNode target : statement.get("targets")) {
      byte[] family = bytes(target, "family");
      switch (target.get("kind").asText()) {
        case "Delete":
          delete.addColumn(family, bytes(target, "qualifier"), timestamp(target));
          break;
        case "DeleteColumn":
          delete.addColumns(family, bytes(target, "qualifier"), timestamp(target));
          break;
        case "DeleteFamily":
          delete.addFamily(family, timestamp(target));
          break;
        default:
          delete.addFamilyVersion(family, target.get("timestamp_ms").asLong());
      }
    }
    return delete;
  }

  private static long timestamp(JsonNode node) {
    JsonNode given = node.get("timestamp_ms");
    return given.isNull() ? HConstants.LATEST_TIMESTAMP : given.asLong();
  }

  static byte[] bytes(JsonNode node, String name) throws IOException {
    return node.get(name).binaryValue();
  }
}
