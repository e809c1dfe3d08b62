package com.acme.clicks;

import java.util.HashMap;
import java.util.Map;
import org.apache.storm.Config;
import org.apache.storm.task.OutputCollector;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.topology.BasicOutputCollector;
import org.apache.storm.topology.OutputFieldsDeclarer;
import org.apache.storm.topology.base.BaseBasicBolt;
import org.apache.storm.topology.base.BaseRichBolt;
import org.apache.storm.topology.base.BaseWindowedBolt;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Tuple;
import org.apache.storm.tuple.Values;
import org.apache.storm.utils.TupleUtils;
import org.apache.storm.windowing.TupleWindow;

class RobotBolt extends BaseRichBolt {
    private static final String ALERTS = "alerts";
    private final int every;
    private OutputCollector collector;

    RobotBolt(int every) {
        this.every = every;
    }

    public void prepare(Map<String, Object> conf, TopologyContext context, OutputCollector collector) {
        this.collector = collector;
    }

    public void execute(Tuple tuple) {
        if (TupleUtils.isTick(tuple)) {
            collector.emit(ALERTS, new Values("me"));
        } else {
            collector.emit(tuple, tuple.getValues());
        }
        collector.ack(tuple);
    }

    public void declareOutputFields(OutputFieldsDeclarer declarer) {
        declarer.declare(new Fields(Names.PAGE, Names.USER, "time"));
        declarer.declareStream(ALERTS, new Fields(Names.USER));
    }

    public Map<String, Object> getComponentConfiguration() {
        Map<String, Object> conf = new HashMap<>();
        conf.put(Config.TOPOLOGY_TICK_TUPLE_FREQ_SECS, every);
        return conf;
    }
}

class CountBolt extends BaseBasicBolt {
    private final String field;
    private final Map<String, Integer> counts = new HashMap<>();

    CountBolt(String field) {
        this.field = field;
    }

    public void execute(Tuple tuple, BasicOutputCollector collector) {
        collector.emit(new Values(tuple.getStringByField(field), counts.merge(tuple.getStringByField(field), 1, Integer::sum)));
    }

    public void declareOutputFields(OutputFieldsDeclarer declarer) {
        declarer.declare(new Fields(field, "count"));
    }
}

class MinuteBolt extends BaseWindowedBolt {
    private OutputCollector collector;

    public void execute(TupleWindow window) {
        collector.emit(new Values(window.get().size()));
    }

    public void declareOutputFields(OutputFieldsDeclarer declarer) {
        declarer.declare(new Fields("clicks"));
    }
}

class StoreBolt extends BaseBasicBolt {
    StoreBolt(String url) {
    }

    public void execute(Tuple tuple, BasicOutputCollector collector) {
    }

    public void declareOutputFields(OutputFieldsDeclarer declarer) {
    }
}
