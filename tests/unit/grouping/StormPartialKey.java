// Recorded storm_partial_key.jsonl: which task Storm's PartialKeyGrouping sends each of a sequence of tuples to (D12).
//
// Reads messages {"t": [values]} from standard input, a line each, parses them as Storm's JsonSerializer does, and prints
// each with the task among 7 (ids 0 to 6) that the grouping by all the fields chooses, and, where the first value is a text,
// an int or a boolean, the one that the grouping without fields chooses. There is one sender for each number of values.
// It needs Storm's storm-client, storm-shaded-deps and slf4j-api on the class path; the record was made with 2.8.3.
//
//   java -cp "$STORM_JARS" StormPartialKey.java < messages > storm_partial_key.jsonl

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.storm.generated.GlobalStreamId;
import org.apache.storm.grouping.PartialKeyGrouping;
import org.apache.storm.shade.net.minidev.json.JSONValue;
import org.apache.storm.task.WorkerTopologyContext;
import org.apache.storm.tuple.Fields;

public class StormPartialKey {
    private static final List<Integer> TASKS = Arrays.asList(0, 1, 2, 3, 4, 5, 6);

    @SuppressWarnings("unchecked")
    public static void main(String[] args) throws Exception {
        Map<Integer, PartialKeyGrouping> byAll = new HashMap<>();
        PartialKeyGrouping byFirst = new PartialKeyGrouping();
        byFirst.prepare(null, null, TASKS);
        BufferedReader messages = new BufferedReader(new InputStreamReader(System.in, "US-ASCII"));
        String line;
        while ((line = messages.readLine()) != null) {
            List<Object> values = ((Map<String, List<Object>>) JSONValue.parseWithException(line)).get("t");
            Object first = values.get(0);
            boolean fraction = first instanceof Float || first instanceof Double || first instanceof BigDecimal;
            boolean plain = first instanceof String || first instanceof Boolean || first instanceof Number && !fraction;
            System.out.printf(
                "{\"t\": %s, \"task\": %d, \"by_first\": %s}%n",
                line.substring(6, line.length() - 1),
                byAll.computeIfAbsent(values.size(), StormPartialKey::grouping).chooseTasks(9, values).get(0),
                plain ? byFirst.chooseTasks(9, values).get(0).toString() : "null");
        }
    }

    private static PartialKeyGrouping grouping(int size) {
        List<String> names = new ArrayList<>();
        for (int i = 0; i < size; i++) {
            names.add("f" + i);
        }
        Fields fields = new Fields(names);
        Map<String, Map<String, Fields>> streams =
            Collections.singletonMap("words", Collections.singletonMap("default", fields));
        PartialKeyGrouping grouping = new PartialKeyGrouping(fields);
        grouping.prepare(
            new WorkerTopologyContext(null, new HashMap<>(), new HashMap<>(), new HashMap<>(), streams, "demo", null, null, 1, TASKS,
                new HashMap<>(), new HashMap<>()),
            new GlobalStreamId("words", "default"),
            TASKS);
        return grouping;
    }
}
