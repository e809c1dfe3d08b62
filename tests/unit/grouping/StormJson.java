// Recorded storm_json.jsonl: how Storm itself routes what a multilang component sends as JSON (D3).
//
// Reads messages {"t": [values]} from standard input, a line each, parses them as Storm's JsonSerializer does, and prints
// each with the index that Storm's fields grouping gives these values among 7 and among 1000003 tasks. It needs Storm's
// storm-client, storm-shaded-deps and slf4j-api on the class path; the record was made with 2.8.3.
//
//   java -cp "$STORM_JARS" StormJson.java < messages > storm_json.jsonl

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.List;
import java.util.Map;
import org.apache.storm.shade.net.minidev.json.JSONValue;
import org.apache.storm.utils.TupleUtils;

public class StormJson {
    @SuppressWarnings("unchecked")
    public static void main(String[] args) throws Exception {
        BufferedReader messages = new BufferedReader(new InputStreamReader(System.in, "US-ASCII"));
        String line;
        while ((line = messages.readLine()) != null) {
            List<Object> values = ((Map<String, List<Object>>) JSONValue.parseWithException(line)).get("t");
            System.out.printf(
                "{\"t\": %s, \"of_7\": %d, \"of_1000003\": %d}%n",
                line.substring(6, line.length() - 1),
                TupleUtils.chooseTaskIndex(values, 7),
                TupleUtils.chooseTaskIndex(values, 1_000_003));
        }
    }
}
