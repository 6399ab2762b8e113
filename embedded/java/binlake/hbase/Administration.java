package binlake.hbase;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.KeepDeletedCells;
import org.apache.hadoop.hbase.NamespaceDescriptor;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptor;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.CompactionState;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.RegionLocator;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.replication.ReplicationPeerConfig;
import org.apache.hadoop.hbase.replication.ReplicationPeerConfigBuilder;
import org.apache.hadoop.hbase.replication.ReplicationQueueStorage;
import org.apache.hadoop.hbase.replication.ReplicationStorageFactory;
import org.apache.hadoop.hbase.zookeeper.ZKWatcher;

/** Tables, regions, region servers and the replication. */
final class Administration {
  private static final long PAUSE_MS = 100;
  private static final int QUIET_CHECKS = 4;

  private final Connection connection;
  private final Admin admin;

  Administration(Connection connection) throws IOException {
    this.connection = connection;
    admin = connection.getAdmin();
  }

  Object carryOut(String what, TableName table, JsonNode request) throws Exception {
    switch (what) {
      case "create":
        return create(table, request);
      case "drop":
        admin.disableTable(table);
        admin.deleteTable(table);
        return true;
      case "flush":
        admin.flush(table);
        return true;
      case "majorCompact":
        return majorCompact(table);
      case "split":
        admin.splitRegionAsync(region(table, request).getRegionName(), Statements.bytes(request, "row"))
            .get(request.get("timeout_ms").asLong(), TimeUnit.MILLISECONDS);
        return true;
      case "move":
        return move(table, request);
      case "holder":
        return holder(table, region(table, request)).getPort();
      case "servers":
        return ports(admin.getRegionServers());
      case "peer":
        return peer(request);
      case "drain":
        return drain(request.get("timeout_ms").asLong());
      default:
        throw new IllegalArgumentException("no such request: " + what);
    }
  }

  private static List<Integer> ports(Collection<ServerName> servers) {
    List<Integer> ports = new ArrayList<>();
    servers.forEach(server -> ports.add(server.getPort()));
    return ports;
  }

  private boolean create(TableName name, JsonNode request) throws IOException {
    String namespace = name.getNamespaceAsString();
    if (Arrays.stream(admin.listNamespaceDescriptors()).noneMatch(known -> known.getName().equals(namespace))) {
      admin.createNamespace(NamespaceDescriptor.create(namespace).build());
    }
    TableDescriptorBuilder table = TableDescriptorBuilder.newBuilder(name);
    for (JsonNode family : request.get("families")) {
      table.setColumnFamily(family(family));
    }
    List<byte[]> splits = new ArrayList<>();
    for (JsonNode key : request.get("splits")) {
      splits.add(key.binaryValue());
    }
    admin.createTable(table.build(), splits.isEmpty() ? null : splits.toArray(new byte[0][]));
    return true;
  }

  private static ColumnFamilyDescriptor family(JsonNode declared) {
    byte[] name = declared.get("name").asText().getBytes(StandardCharsets.UTF_8);
    ColumnFamilyDescriptorBuilder family = ColumnFamilyDescriptorBuilder.newBuilder(name)
        .setMaxVersions(declared.get("versions").asInt())
        .setMinVersions(declared.get("min_versions").asInt())
        .setNewVersionBehavior(declared.get("by_sequence").asBoolean())
        .setKeepDeletedCells(declared.get("keep_deleted").asBoolean() ? KeepDeletedCells.TRUE : KeepDeletedCells.FALSE)
        .setScope(HConstants.REPLICATION_SCOPE_GLOBAL);
    if (!declared.get("ttl_ms").isNull()) {
      family.setTimeToLive((int) TimeUnit.MILLISECONDS.toSeconds(declared.get("ttl_ms").asLong()));
    }
    return family.build();
  }

  private boolean majorCompact(TableName table) throws Exception {
    List<Long> before = lastMajorCompactions(table);
    admin.majorCompact(table);
    // The state is NONE before the request reaches a region server, too.
    while (admin.getCompactionState(table) != CompactionState.NONE || lastMajorCompactions(table).equals(before)) {
      Thread.sleep(PAUSE_MS);
    }
    return true;
  }

  private List<Long> lastMajorCompactions(TableName table) throws IOException {
    List<Long> times = new ArrayList<>();
    for (RegionInfo region : admin.getRegions(table)) {
      times.add(admin.getLastMajorCompactionTimestampForRegion(region.getRegionName()));
    }
    return times;
  }

  private RegionInfo region(TableName table, JsonNode request) throws IOException {
    try (RegionLocator regions = connection.getRegionLocator(table)) {
      return regions.getRegionLocation(Statements.bytes(request, "row"), true).getRegion();
    }
  }

  private ServerName holder(TableName table, RegionInfo region) throws IOException {
    try (RegionLocator regions = connection.getRegionLocator(table)) {
      return regions.getRegionLocation(region.getStartKey(), true).getServerName();
    }
  }

  private int move(TableName table, JsonNode request) throws IOException {
    RegionInfo region = region(table, request);
    ServerName from = holder(table, region);
    for (ServerName server : admin.getRegionServers()) {
      if (!server.equals(from)) {
        admin.move(region.getEncodedNameAsBytes(), server);
        return server.getPort();
      }
    }
    throw new IOException("there is one region server only");
  }

  private boolean peer(JsonNode request) throws IOException {
    ReplicationPeerConfigBuilder peer = ReplicationPeerConfig.newBuilder()
        .setReplicationEndpointImpl(FaultyWalToKafka.class.getName());
    request.get("settings").fields()
        .forEachRemaining(setting -> peer.putConfiguration(setting.getKey(), setting.getValue().asText()));
    admin.addReplicationPeer(request.get("name").asText(), peer.build());
    return true;
  }

  /**
   * Waits until all changes are replicated: a live region server's queue has only the WAL that is being written, which
   * is new, and there is no queue of a dead one. Returns whether that came in time.
   */
  private boolean drain(long timeoutMs) throws Exception {
    long until = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(timeoutMs);
    for (ServerName server : admin.getRegionServers()) {
      admin.rollWALWriter(server);
    }
    try (ZKWatcher zooKeeper = new ZKWatcher(connection.getConfiguration(), "drain", null)) {
      ReplicationQueueStorage queues =
          ReplicationStorageFactory.getReplicationQueueStorage(zooKeeper, connection.getConfiguration());
      // A queue that changes its owner may be seen at neither.
      for (int quiet = 0; quiet < QUIET_CHECKS; quiet = drained(queues) ? quiet + 1 : 0) {
        if (System.nanoTime() > until) {
          return false;
        }
        Thread.sleep(PAUSE_MS);
      }
    }
    return true;
  }

  private boolean drained(ReplicationQueueStorage queues) throws Exception {
    Collection<ServerName> live = admin.getRegionServers();
    for (ServerName server : queues.getListOfReplicators()) {
      for (String queue : queues.getAllQueues(server)) {
        // A queue taken over from a dead server has that server's name after the peer's.
        if (!live.contains(server) || queue.contains("-") || queues.getWALsInQueue(server, queue).size() > 1) {
          return false;
        }
      }
    }
    return true;
  }
}
