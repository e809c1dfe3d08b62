"""What workers need beside Spark executors: it grows with what it depends on, and the settings that it names are enough."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormspark import TopologyBuilder
from stormspark.plan import PhysicalPlan, plan_topology
from stormspark.plan.needs import (
    default_overhead,
    executor_needs,
    mebibytes,
    shortfalls,
    submitted_to,
    worker_needs,
)
from stormspark.testing import TestWordSpout

OVERHEAD, PYSPARK = "spark.executor.memoryOverhead", "spark.executor.pyspark.memory"


def planned(workers: int, memory: float | None = None, tasks: int = 4, **conf: object) -> PhysicalPlan:
    builder = TopologyBuilder()
    spout = builder.set_spout("words", TestWordSpout(), parallelism=tasks)
    if memory is not None:
        spout.set_memory_load(memory, memory)
    return plan_topology(builder.create_topology("demo"), {"topology.workers": workers, **conf})


PLANS = st.builds(planned, st.integers(1, 4), st.none() | st.integers(0, 5000), st.integers(1, 8))
CONFS = st.fixed_dictionaries(
    {},
    optional={
        "spark.executor.cores": st.integers(1, 16).map(str),
        "spark.task.cpus": st.integers(1, 4).map(str),
        "spark.executor.instances": st.integers(1, 8).map(str),
        "spark.executor.memory": st.integers(1, 64).map(lambda gigabytes: f"{gigabytes}g"),
        OVERHEAD: st.integers(1, 20_000).map(lambda megabytes: f"{megabytes}m"),
        PYSPARK: st.integers(1, 20_000).map(str),
    },
)


@given(PLANS, CONFS, st.sampled_from(["yarn", "k8s://host", "spark://host:1", "local[2]"]))
def test_the_settings_that_it_names_are_enough(plan: PhysicalPlan, conf: dict[str, str], master: str) -> None:
    needs = executor_needs(plan, conf)
    cores = int(conf.get("spark.executor.cores", 1))
    enough = conf | {
        OVERHEAD: f"{needs.overhead_mb}m",
        "spark.executor.cores": str(max(cores, needs.workers)),
    }
    if PYSPARK in enough:
        enough[PYSPARK] = f"{needs.worker.addresses_mb * int(enough['spark.executor.cores'])}m"
    assert list(shortfalls(needs, enough, master)) == []


@given(PLANS, CONFS)
def test_an_executor_has_room_for_its_workers_and_its_jvm(plan: PhysicalPlan, conf: dict[str, str]) -> None:
    needs = executor_needs(plan, conf)
    heap = mebibytes(conf.get("spark.executor.memory")) or 1024
    assert 1 <= needs.workers <= plan.workers
    assert needs.overhead_mb >= needs.workers * needs.worker.memory_mb + max(384, heap / 10)


@given(PLANS, CONFS, st.integers(1, 8))
def test_fewer_executors_need_no_less(plan: PhysicalPlan, conf: dict[str, str], executors: int) -> None:
    few, more = (executor_needs(plan, conf, number) for number in (executors, executors + 1))
    assert few.overhead_mb >= more.overhead_mb
    assert few.workers * executors >= plan.workers


@given(st.integers(1, 4), st.integers(0, 3000), st.integers(1, 3000))
def test_what_components_declare_counts(workers: int, memory: int, more: int) -> None:
    less, much = (worker_needs(planned(workers, size)).memory_mb for size in (memory, memory + more))
    assert much - less == 2 * more * -(-4 // workers)  # on the heap, and off it


def test_marks_and_kept_replies_count() -> None:
    settings = {"stormspark.queue.high.mark.bytes": 10 << 20, "stormspark.replies.memory.bytes": 1 << 20}
    needs = worker_needs(planned(2, **settings))
    assert (needs.queues_mb, needs.declared_mb) == (10, 0)


@pytest.mark.parametrize(
    ("master", "conf", "said"),
    [
        (
            "yarn",
            {},
            "spark.executor.memoryOverhead is not set, so there are 384 MB: the cluster may kill it; set",
        ),
        (
            "k8s://host",
            {OVERHEAD: "400m"},
            "but spark.executor.memoryOverhead is 400m: the cluster may kill it; set",
        ),
        (
            "spark://host:1",
            {PYSPARK: "500m"},
            "limits each Python process, and each worker, to 500 MB of addresses",
        ),
        (
            "yarn",
            {"spark.executor.instances": "1", OVERHEAD: "9g"},
            "has 4 workers, but spark.executor.cores is 1",
        ),
    ],
)
def test_what_is_too_small_is_told(master: str, conf: dict[str, str], said: str) -> None:
    (sentence,) = shortfalls(executor_needs(planned(4), conf), conf, master)
    assert said in sentence


@pytest.mark.parametrize("master", ["local[4]", "spark://host:7077", "local-cluster[2,1,1024]"])
def test_without_a_limit_nothing_is_said(master: str) -> None:
    assert list(shortfalls(executor_needs(planned(4), {}), {}, master)) == []


LEAST, FACTOR = "spark.executor.minMemoryOverhead", "spark.executor.memoryOverheadFactor"
FACTOR_K8S = "spark.kubernetes.memoryOverheadFactor"


@pytest.mark.parametrize(
    ("master", "in_cluster", "conf", "expected"),
    [
        ("yarn", False, {}, 1000),
        ("yarn", True, {}, 1000),
        ("k8s://host", False, {}, 1000),
        ("k8s://host", True, {}, 4000),
        ("k8s://host", False, {FACTOR_K8S: "0.4"}, 4000),  # as a driver on the cluster finds it
        ("k8s://host", True, {FACTOR_K8S: "0.2"}, 2000),
        ("k8s://host", True, {FACTOR_K8S: "0.2", FACTOR: "0.3"}, 3000),
        ("yarn", False, {FACTOR_K8S: "0.2"}, 1000),
        ("yarn", False, {FACTOR: "0.00001"}, 384),
        ("yarn", False, {LEAST: "2g"}, 2048),
        ("k8s://host", True, {LEAST: "0", FACTOR: "0.01"}, 100),
        ("yarn", False, {FACTOR: "much", LEAST: "much"}, 1000),
    ],
)
def test_the_overhead_that_spark_requests_by_itself(
    master: str, in_cluster: bool, conf: dict[str, str], expected: int
) -> None:
    of_driver = submitted_to(master, {"spark.executor.memory": "10000m"} | conf, in_cluster=in_cluster)
    assert default_overhead(of_driver, master) == expected


def test_what_spark_requests_by_itself_may_be_enough() -> None:
    """A driver that runs beside a cluster of Kubernetes gets a tenth of the heap, and one on the cluster gets more."""
    plan, conf = planned(1), {"spark.executor.memory": "4g"}
    needs = executor_needs(plan, conf)
    (sentence,) = shortfalls(needs, conf, "k8s://host")
    assert "is not set, so there are 409 MB" in sentence
    on_the_cluster = submitted_to("k8s://host", conf, in_cluster=True)
    assert list(shortfalls(needs, on_the_cluster, "k8s://host")) == []
    assert list(shortfalls(needs, conf | {LEAST: f"{needs.overhead_mb}m"}, "k8s://host")) == []
