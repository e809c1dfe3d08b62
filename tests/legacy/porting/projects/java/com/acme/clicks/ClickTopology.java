package com.acme.clicks;

import static com.acme.clicks.Names.CLICKS;

import org.apache.storm.Config;
import org.apache.storm.LocalCluster;
import org.apache.storm.StormSubmitter;
import org.apache.storm.topology.BoltDeclarer;
import org.apache.storm.topology.TopologyBuilder;
import org.apache.storm.topology.base.BaseWindowedBolt.Duration;
import org.apache.storm.tuple.Fields;
import java.util.concurrent.TimeUnit;

/** Clicks of pages: counted by page and by minute, and robots told apart. */
public final class ClickTopology {
    private static final int WORKERS = 2;
    private final TopologyBuilder builder = new TopologyBuilder();

    private ClickTopology() {
        builder.setSpout(CLICKS, new ClickSpout("/data/clicks", Names.PAGE, Names.USER), 2 * WORKERS)
            .setMaxSpoutPending(1000);
        BoltDeclarer robots = builder.setBolt(Names.ROBOTS, new RobotBolt(5), 3);
        robots.fieldsGrouping(CLICKS, new Fields(Names.USER));
        addCounts();
        builder.setBolt("store", new StoreBolt(System.getenv("STORE_URL")))
            .globalGrouping(Names.COUNTS + "-by-page")
            .allGrouping(Names.ROBOTS, "alerts");
    }

    private void addCounts() {
        addCount("by-page", Names.PAGE, 4);
        builder.setBolt("per-minute", new MinuteBolt().withTumblingWindow(new Duration(1, TimeUnit.MINUTES)).withLag(Duration.seconds(5))
                .withTimestampField("time"), 2)
            .localOrShuffleGrouping(Names.ROBOTS);
    }

    private void addCount(String name, String field, int tasks) {
        builder.setBolt(Names.COUNTS + "-" + name, new CountBolt(field), tasks)
            .partialKeyGrouping(Names.ROBOTS, new Fields(field));
    }

    public static void main(String[] args) throws Exception {
        Config conf = new Config();
        conf.setNumWorkers(WORKERS);
        conf.setMessageTimeoutSecs(180);
        conf.put(Config.TOPOLOGY_WORKER_CHILDOPTS, "-Xmx2g");
        String name = "clicks";
        if (args.length > 0) {
            name = args[0];
            StormSubmitter.submitTopology(name, conf, new ClickTopology().builder.createTopology());
        } else {
            try (LocalCluster cluster = new LocalCluster()) {
                cluster.submitTopology(name, conf, new ClickTopology().builder.createTopology());
            }
        }
    }
}
