package binlake.hbase;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Paths;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Table;

/**
 * Carries out requests: a JSON object a line on standard input, answered on standard output by a line
 * {"result": ...} or {"error": ...}; a scan answers with a line a row before. Bytes are base64.
 */
public final class Client {
  private static final ObjectMapper JSON = new ObjectMapper();

  private final Connection connection;
  private final Administration administration;
  private final PrintStream out;

  private Client(Connection connection, PrintStream out) throws IOException {
    this.connection = connection;
    this.out = out;
    administration = new Administration(connection);
  }

  public static void main(String[] arguments) throws Exception {
    PrintStream out = System.out;
    // What a library prints must not stand among the answers.
    System.setOut(System.err);
    Configuration configuration = HBaseConfiguration.create();
    try (Connection connection = ConnectionFactory.createConnection(configuration)) {
      Client client = new Client(connection, out);
      BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
        client.answer(line);
      }
    }
    System.exit(0);
  }

  private void answer(String line) {
    ObjectNode answer = JSON.createObjectNode();
    try {
      answer.set("result", JSON.valueToTree(carryOut(JSON.readTree(line))));
    } catch (Exception problem) {
      answer.removeAll();
      answer.put("error", problem.toString());
    }
    out.println(answer);
    out.flush();
  }

  private Object carryOut(JsonNode request) throws Exception {
    String what = request.get("do").asText();
    if (!request.has("table")) {
      return administration.carryOut(what, null, request);
    }
    TableName name = TableName.valueOf(request.get("table").asText());
    try (Table table = connection.getTable(name)) {
      switch (what) {
        case "apply":
          return Statements.apply(table, request.get("statement"));
        case "batch":
          return Statements.batch(table, request.get("statements"));
        case "scan":
          return Scans.print(table, request, out);
        case "export":
          return Scans.export(table, Paths.get(request.get("path").asText()));
        default:
          return administration.carryOut(what, name, request);
      }
    }
  }
}
