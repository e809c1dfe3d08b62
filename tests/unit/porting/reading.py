"""Sources written into a folder and read; a skeleton's plan held against what was read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from stormspark.api.topology import Topology
from stormspark.cli.load import load_topology
from stormspark.grouping import without_wrapping
from stormspark.plan import plan_topology
from stormspark.porting.findings import Findings, Statement, TopologyFound
from stormspark.porting.project import read_project

IMPORTS = """
import java.util.*;
import org.apache.storm.*;
import org.apache.storm.topology.*;
import org.apache.storm.topology.base.*;
import org.apache.storm.task.*;
import org.apache.storm.tuple.*;
import org.apache.storm.testing.TestWordSpout;
"""

#: Components by id, with kind, parallelism and tasks; subscriptions with source, stream, target, grouping and fields.
Graph = tuple[dict[str, Any], set[tuple[str, str, str, str, str]]]

#: A spout with two streams and a bolt, for topologies that are about something else.
COMPONENTS = """
class Lines extends BaseRichSpout {
    SpoutOutputCollector collector;
    public void open(Map<String, Object> conf, TopologyContext context, SpoutOutputCollector collector) {}
    public void nextTuple() { collector.emit(new Values("a", 1), 7); }
    public void declareOutputFields(OutputFieldsDeclarer declarer) {
        declarer.declare(new Fields("line", "number"));
        declarer.declareStream("errors", new Fields("reason"));
        declarer.declareStream("asked", true, new Fields("task"));
    }
}
class Split extends BaseBasicBolt {
    public void execute(Tuple tuple, BasicOutputCollector collector) { collector.emit(new Values("a")); }
    public void declareOutputFields(OutputFieldsDeclarer declarer) { declarer.declare(new Fields("word")); }
}
class Print extends BaseRichBolt {
    public void prepare(Map<String, Object> conf, TopologyContext context, OutputCollector collector) {}
    public void execute(Tuple tuple) {}
    public void declareOutputFields(OutputFieldsDeclarer declarer) {}
}
"""


def read_files(folder: Path, files: dict[str, str]) -> Findings:
    """Write the files, and read the folder."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return read_project(folder)[0]


def read_main(folder: Path, body: str, more: str = "") -> TopologyFound:
    """The topology that ``main`` with this body builds; ``more`` are members of its class."""
    source = f"""{IMPORTS}
public class Main {{
    {more}
    public static void main(String[] args) throws Exception {{
{body}
    }}
}}
{COMPONENTS}"""
    [topology] = read_files(folder, {"Main.java": source}).topologies
    return topology


def line_of(folder: Path, text: str, file: str = "Main.java") -> int:
    """The number of the line with this text in it."""
    lines = (folder / file).read_text().splitlines()
    [number] = [number for number, line in enumerate(lines, 1) if text in line]
    return number


def reported(topology: TopologyFound | Findings, kind: str, pattern: str) -> list[Statement]:
    """The statements of a kind that match."""
    return [one for one in topology.statements if one.kind == kind and re.search(pattern, one.text)]


def graph_read(topology: TopologyFound) -> Graph:
    """Components with parallelism, tasks and declared streams; and edges with their groupings."""
    components = {
        component.id: (component.kind, component.parallelism, component.tasks or component.parallelism)
        for component in topology.components
        if component.id is not None
    }
    edges = {
        (one.source or "?", one.stream or "?", component.id or "?", one.grouping, ", ".join(one.fields or ()))
        for component, one in topology.inputs
    }
    return components, edges


def graph_planned(topology: Topology) -> Graph:
    """The same of a plan, without the cap that the topology's configuration may put on tasks."""
    plan = plan_topology(topology, {"topology.max.task.parallelism": None})
    components = {
        component.id: (component.kind, component.parallelism, len(component.tasks))
        for component in plan.components.values()
    }
    edges = set()
    for edge in plan.edges:
        grouping = without_wrapping(edge.grouping)
        fields = getattr(grouping, "fields", ())
        edges.add((edge.source, edge.stream, edge.target, grouping.kind, ", ".join(fields)))
    return components, edges


def planned_skeleton(folder: Path, name: str) -> Topology:
    """A skeleton, loaded as ``stormspark explain`` does; ``name`` must be another one in each test of a process."""
    return load_topology(str(folder / name))
