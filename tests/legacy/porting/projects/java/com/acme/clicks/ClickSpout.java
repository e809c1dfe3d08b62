package com.acme.clicks;

import java.util.Map;
import org.apache.storm.spout.SpoutOutputCollector;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.topology.OutputFieldsDeclarer;
import org.apache.storm.topology.base.BaseRichSpout;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Values;

public class ClickSpout extends BaseRichSpout {
    private final String folder;
    private final String[] names;
    private SpoutOutputCollector collector;

    public ClickSpout(String folder, String... names) {
        this.folder = folder;
        this.names = names;
    }

    @Override
    public void open(Map<String, Object> conf, TopologyContext context, SpoutOutputCollector collector) {
        this.collector = collector;
    }

    @Override
    public void nextTuple() {
        collector.emit(new Values("/index", "me", 1L), 1L);
    }

    @Override
    public void fail(Object id) {
        collector.emit(new Values("/index", "me", 1L), id);
    }

    @Override
    public void declareOutputFields(OutputFieldsDeclarer declarer) {
        declarer.declare(new Fields(names[0], names[1], "time"));
    }
}
