// Recorded storm_load_aware.jsonl: how Storm's LoadAwareShuffleGrouping shares tuples out as loads change (D6).
//
// Reads lines "LOCAL TARGETS REFRESHES LOAD,LOAD,...": the targets' ids are 0 to TARGETS - 1, the first LOCAL of them live in
// the sender's worker, and of the others Storm does not know where they are: they are as far away as can be. A line with
// other LOCAL or TARGETS than the one before begins with a new sender. For each line it refreshes the sender's loads so many
// times (Storm goes from its nearest scope to the widest, and back, in three steps) and prints how many tuples of one turn of
// the ring each target gets.
// It needs Storm's storm-client, storm-shaded-deps and slf4j-api on the class path; the record was made with 2.8.3.
//
//   java -cp "$STORM_JARS" StormLoadAware.java < lines > storm_load_aware.jsonl

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.storm.Config;
import org.apache.storm.generated.GlobalStreamId;
import org.apache.storm.generated.NodeInfo;
import org.apache.storm.grouping.LoadAwareShuffleGrouping;
import org.apache.storm.grouping.LoadMapping;
import org.apache.storm.task.WorkerTopologyContext;

public class StormLoadAware {
    public static void main(String[] args) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, "US-ASCII"));
        String sender = "";
        LoadAwareShuffleGrouping grouping = null;
        String line;
        while ((line = lines.readLine()) != null) {
            String[] words = line.split(" ");
            int local = Integer.parseInt(words[0]);
            int targets = Integer.parseInt(words[1]);
            if (!sender.equals(words[0] + " " + words[1])) {
                sender = words[0] + " " + words[1];
                grouping = grouping(local, targets);
            }
            Map<Integer, Double> loads = new HashMap<>();
            String[] numbers = words[3].split(",");
            for (int i = 0; i < targets; i++) {
                loads.put(i, Double.valueOf(numbers[i]));
            }
            LoadMapping mapping = new LoadMapping();
            mapping.setLocal(loads);
            int refreshes = Integer.parseInt(words[2]);
            for (int i = 0; i < refreshes; i++) {
                grouping.refreshLoad(mapping);
            }
            int[] counts = new int[targets];
            for (int i = 0; i < grouping.getCapacity(); i++) {
                counts[grouping.chooseTasks(9, Collections.emptyList()).get(0)]++;
            }
            System.out.printf(
                "{\"local\": %d, \"targets\": %d, \"loads\": [%s], \"refreshes\": %d, \"turn\": %s}%n",
                local, targets, words[3].replace(",", ", "), refreshes, Arrays.toString(counts));
        }
    }

    private static LoadAwareShuffleGrouping grouping(int local, int targets) {
        Map<Integer, NodeInfo> places = new HashMap<>();
        List<Integer> tasks = new ArrayList<>();
        for (int i = 0; i < targets; i++) {
            tasks.add(i);
            if (i < local) {
                places.put(i, new NodeInfo("here", Collections.singleton(6700L)));
            }
        }
        Map<String, String> hosts = new HashMap<>();
        hosts.put("here", "host");
        Map<String, Object> conf = new HashMap<>();
        conf.put(Config.STORM_NETWORK_TOPOGRAPHY_PLUGIN, "org.apache.storm.networktopography.DefaultRackDNSToSwitchMapping");
        conf.put(Config.TOPOLOGY_LOCALITYAWARE_HIGHER_BOUND, 0.8);
        conf.put(Config.TOPOLOGY_LOCALITYAWARE_LOWER_BOUND, 0.2);
        LoadAwareShuffleGrouping grouping = new LoadAwareShuffleGrouping();
        grouping.prepare(
            new WorkerTopologyContext(null, conf, new HashMap<>(), new HashMap<>(), new HashMap<>(), "demo", null, null, 6700, tasks,
                new HashMap<>(), new HashMap<>(), new AtomicReference<>(places), "here", new AtomicReference<>(hosts)),
            new GlobalStreamId("words", "default"),
            tasks);
        return grouping;
    }
}
