package binlake.hbase;

import java.io.IOException;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.hadoop.hbase.Server;

/**
 * The endpoint as tests need it: every n-th batch ("fail.every" of the peer) is sent and then reported as failed, as
 * after a lost acknowledgement, so that HBase sends it again; and region servers can be slowed down.
 */
public class FaultyWalToKafka extends WalToKafka {
  /** Port of a region server (0: all) to the pause before each of its batches, in milliseconds. */
  static final Map<Integer, Long> PAUSES = new ConcurrentHashMap<>();

  private int failEvery;
  private int port;
  private long batches;

  @Override
  public void init(Context context) throws IOException {
    super.init(context);
    failEvery = Integer.parseInt(context.getPeerConfig().getConfiguration().getOrDefault("fail.every", "0"));
    port = ((Server) context.getAbortable()).getServerName().getPort();
  }

  @Override
  public boolean replicate(ReplicateContext batch) {
    try {
      Thread.sleep(Math.max(PAUSES.getOrDefault(0, 0L), PAUSES.getOrDefault(port, 0L)));
    } catch (InterruptedException stop) {
      Thread.currentThread().interrupt();
      return false;
    }
    if (!super.replicate(batch)) {
      return false;
    }
    batches++;
    return failEvery == 0 || batches % failEvery != 0;
  }
}
