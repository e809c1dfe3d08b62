"""Every name that users import from heronpy."""

from __future__ import annotations

import importlib
import sys

import pytest

from stormspark.compat.heronpy import components, constants, stream, topology
from stormspark.compat.heronpy.project import ON_PATH
from stormspark.errors import InvalidTopologyError
from stormspark.user_code import put_first

pytestmark = pytest.mark.usefixtures("as_it_was")

NAMES = """
heronpy.api.api_constants: TOPOLOGY_STMGRS TOPOLOGY_MAX_SPOUT_PENDING TopologyReliabilityMode TOPOLOGY_CONTAINER_RAM_PADDING
heronpy.api.bolt.base_bolt: BaseBolt
heronpy.api.bolt.bolt: Bolt
heronpy.api.bolt.window_bolt: SlidingWindowBolt TumblingWindowBolt WindowContext
heronpy.api.component.base_component: BaseComponent
heronpy.api.component.component_spec: HeronComponentSpec GlobalStreamId
heronpy.api.custom_grouping: ICustomGrouping
heronpy.api.global_metrics: incr safe_incr metricsContainer init
heronpy.api.metrics: IMetric CountMetric MultiCountMetric IReducer MeanReducer ReducedMetric MultiReducedMetric
    AssignableMetrics MultiAssignableMetrics MeanReducedMetric MultiMeanReducedMetric
heronpy.api.serializer: IHeronSerializer PythonSerializer default_serializer
heronpy.api.spout.base_spout: BaseSpout
heronpy.api.spout.spout: Spout
heronpy.api.state.state: State HashMapState
heronpy.api.state.stateful_component: StatefulComponent
heronpy.api.stream: Stream Grouping
heronpy.api.task_hook: ITaskHook EmitInfo SpoutAckInfo SpoutFailInfo BoltExecuteInfo BoltAckInfo BoltFailInfo
heronpy.api.topology: Topology TopologyType TopologyBuilder
heronpy.api.topology_context: TopologyContext
heronpy.api.tuple: Tuple TupleHelper
heronpy.connectors.mock.arraylooper: ArrayLooper
heronpy.connectors.textfiles.textfilesgenerator: TextFileGenerator
"""


@pytest.fixture(autouse=True)
def on_path(as_it_was):
    put_first(ON_PATH)


@pytest.mark.parametrize("line", NAMES.strip().replace("\n    ", " ").splitlines())
def test_names(line):
    """A40, A41, A45: where heronpy has them."""
    module, names = line.split(": ")
    found = importlib.import_module(module)
    assert str(found.__file__).startswith(str(ON_PATH))
    assert all(getattr(found, name) is not None for name in names.split())


def test_constants_are_all_there():
    """A45: the names of Heron's keys."""
    there = importlib.import_module("heronpy.api.api_constants")
    ours = {name for name in vars(constants) if name.startswith("TOPOLOGY_")}
    assert len(ours) == 33 and all(getattr(there, name) == getattr(constants, name) for name in ours)
    assert all(getattr(there, name).startswith("topology.") for name in ours)


@pytest.mark.parametrize(
    ("module", "name", "wanted"),
    [
        ("heron.api.src.python", "TopologyBuilder", topology.TopologyBuilder),
        ("heron.api.src.python.bolt.bolt", "Bolt", components.Bolt),
        ("heron.pyheron.src.python", "Grouping", stream.Grouping),
        ("heronpy.api.src.python.spout.spout", "Spout", components.Spout),
        ("heronpy.topology", "Topology", topology.Topology),
        ("heronpy.bolt.bolt", "Bolt", components.Bolt),
        ("pyheron", "Spout", components.Spout),
        ("heron.api.src.python.constants", "TOPOLOGY_STMGRS", "topology.stmgrs"),
        ("heronpy.constants", "TOPOLOGY_STMGRS", "topology.stmgrs"),
    ],
)
def test_older_names(module, name, wanted):
    """A40: those of earlier releases are the same classes."""
    assert getattr(importlib.import_module(module), name) == wanted


def test_a_name_that_there_never_was():
    """A40: told as Python tells it."""
    with pytest.raises(ModuleNotFoundError, match=r"heronpy.api.nothing"):
        importlib.import_module("heronpy.api.nothing")
    with pytest.raises(ImportError, match=r"Nothing"):
        exec("from heron.api.src.python import Nothing")
    assert "heronpy.api.nothing" not in sys.modules


def test_pulsar_is_refused():
    """W23: at the import, with what to do."""
    for module in ("pulsarspout", "pulsarstreamlet"):
        with pytest.raises(ImportError, match=r"no spout for Pulsar here|KafkaSpout"):
            importlib.import_module(f"heronpy.connectors.pulsar.{module}")


def test_generators(tmp_path):
    """G24: the lines of files, shared out over partitions; a list for ever."""
    mock = importlib.import_module("heronpy.connectors.mock.arraylooper")
    files = importlib.import_module("heronpy.connectors.textfiles.textfilesgenerator")

    for name in "ab":
        (tmp_path / f"{name}.txt").write_text(f"{name}1\n{name}2\n")

    class Partition:
        def __init__(self, index):
            self.get_partition_index = lambda: index
            self.get_num_partitions = lambda: 2

    def lines(index):
        generator = files.TextFileGenerator(f"{tmp_path}/*.txt")
        generator.setup(Partition(index))
        return list(iter(generator.get, None))

    assert (lines(0), lines(1)) == (["a1\n", "a2\n"], ["b1\n", "b2\n"])
    looper = mock.ArrayLooper([1, 2])
    looper.setup(Partition(0))
    assert [looper.get() for _ in range(5)] == [1, 2, 1, 2, 1]
    with pytest.raises(InvalidTopologyError, match="must be given an iterable, got 3"):
        mock.ArrayLooper(3)
