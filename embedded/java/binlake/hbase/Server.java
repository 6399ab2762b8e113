package binlake.hbase;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.LocalHBaseCluster;
import org.apache.hadoop.hbase.util.JVMClusterUtil;
import org.apache.hadoop.hbase.zookeeper.MiniZooKeeperCluster;
import org.apache.hadoop.metrics2.lib.DefaultMetricsSystem;
import org.apache.zookeeper.ZooKeeper;

/**
 * HBase in one process: ZooKeeper, a master and two region servers. Arguments: a directory for ZooKeeper's data, and
 * the port of the orders, one a connection and line: "abort PORT" (of a region server; another one takes its place),
 * "slow PORT MILLISECONDS" (of a region server, 0 for all: a pause before each of its replicated batches).
 */
public final class Server {
  private static final int REGION_SERVERS = 2;
  private static final int SESSION_MS = 10_000;

  private final Configuration configuration;
  private final LocalHBaseCluster cluster;
  private int servers = REGION_SERVERS;

  private Server(Configuration configuration) throws IOException {
    this.configuration = configuration;
    cluster = new LocalHBaseCluster(configuration, 1, REGION_SERVERS);
  }

  public static void main(String[] arguments) {
    try {
      run(arguments);
    } catch (Exception problem) {
      problem.printStackTrace();
      // Threads of HBase would keep the process.
      System.exit(1);
    }
  }

  private static void run(String[] arguments) throws Exception {
    DefaultMetricsSystem.setMiniClusterMode(true);
    Configuration configuration = HBaseConfiguration.create();
    MiniZooKeeperCluster zooKeeper = new MiniZooKeeperCluster(configuration);
    int wanted = configuration.getInt("hbase.zookeeper.property.clientPort", 0);
    zooKeeper.setDefaultClientPort(wanted);
    if (zooKeeper.startup(new File(arguments[0])) != wanted) {
      throw new IOException("Address already in use: " + wanted);
    }
    ServerSocket orders = new ServerSocket(Integer.parseInt(arguments[1]), 8, InetAddress.getLoopbackAddress());
    forgetDeadServers(configuration, wanted);
    Server server = new Server(configuration);
    server.start();
    System.out.println("HBase serves");
    while (true) {
      try (Socket caller = orders.accept()) {
        BufferedReader lines = new BufferedReader(new InputStreamReader(caller.getInputStream(), StandardCharsets.UTF_8));
        String answer = server.obey(lines.readLine().split(" "));
        caller.getOutputStream().write((answer + "\n").getBytes(StandardCharsets.UTF_8));
      } catch (IOException | RuntimeException problem) {
        System.out.println("an order failed: " + problem);
      }
    }
  }

  /** Removes the marks of servers that were killed; they would be waited for until their sessions expire. */
  private static void forgetDeadServers(Configuration configuration, int port) throws Exception {
    String root = configuration.get("zookeeper.znode.parent", "/hbase");
    ZooKeeper zooKeeper = new ZooKeeper("127.0.0.1:" + port, SESSION_MS, event -> {});
    try {
      for (String parent : new String[] {root, root + "/rs", root + "/backup-masters"}) {
        if (zooKeeper.exists(parent, false) == null) {
          continue;
        }
        for (String child : zooKeeper.getChildren(parent, false)) {
          String path = parent + "/" + child;
          if (zooKeeper.exists(path, false).getEphemeralOwner() != 0) {
            zooKeeper.delete(path, -1);
          }
        }
      }
    } finally {
      zooKeeper.close();
    }
  }

  private void start() throws IOException, InterruptedException {
    cluster.startup();
    while (cluster.getActiveMaster() == null || !cluster.getActiveMaster().isInitialized()) {
      Thread.sleep(50);
    }
  }

  private String obey(String[] order) throws IOException {
    int port = Integer.parseInt(order[1]);
    if (order[0].equals("slow")) {
      FaultyWalToKafka.PAUSES.put(port, Long.parseLong(order[2]));
      return "done";
    }
    for (JVMClusterUtil.RegionServerThread one : cluster.getLiveRegionServers()) {
      if (order[0].equals("abort") && one.getRegionServer().getServerName().getPort() == port) {
        one.getRegionServer().abort("a test asked for it");
        cluster.addRegionServer(new Configuration(configuration), servers++).start();
        return "done";
      }
    }
    return "no region server has the port " + port;
  }
}
