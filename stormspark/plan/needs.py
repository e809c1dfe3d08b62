"""Estimates the memory and the cores that workers need beside the JVM of a Spark executor, and names the settings that fit.

Spark gives an executor's container memory for its JVM, and a little more (``spark.executor.memoryOverhead``). Workers are
processes of their own in the same container, and so are Spark's Python processes, which carry frames. If they need more than this
little, the kernel or the cluster kills a process. So a plan says what they need:

    a worker = Python and what it imports + the tuples that may wait + the replies that are kept + what components declare
    an executor = its workers + a Python process for each task that runs at once + what its JVM needs outside of its heap

What the components themselves hold can't be known. Users of Storm declare it (``set_memory_load``, A9), and it counts here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from stormspark.cores import slots
from stormspark.plan.physical import PhysicalPlan

__all__ = [
    "OVERHEAD",
    "OVERHEAD_SETTINGS",
    "ExecutorNeeds",
    "WorkerNeeds",
    "default_overhead",
    "executor_needs",
    "limits_memory",
    "mebibytes",
    "present_overhead",
    "requested_cores",
    "requested_executors",
    "shortfalls",
    "submitted_to",
    "worker_needs",
]

OVERHEAD, PYSPARK_MEMORY = "spark.executor.memoryOverhead", "spark.executor.pyspark.memory"
_CORES, _HEAP, _LEAST = "spark.executor.cores", "spark.executor.memory", "spark.executor.minMemoryOverhead"
_FACTOR, _FACTOR_ON_KUBERNETES = (
    "spark.executor.memoryOverheadFactor",
    "spark.kubernetes.memoryOverheadFactor",
)
_DYNAMIC = "spark.dynamicAllocation"
#: The settings by which people say how much memory a container has beside its JVM's heap.
OVERHEAD_SETTINGS = (OVERHEAD, _FACTOR, _FACTOR_ON_KUBERNETES)

#: Measured: a worker without tuples, and one of Spark's Python processes that carries frames.
_PYTHON_MB, _CARRIER_MB = 120, 150
#: Measured: how much more address space than memory a worker takes, before it has threads. ``spark.executor.pyspark.memory``
#: limits the address space, which has libraries that nobody reads.
_ADDRESSES_MB = 600
#: Spark's own rule for the memory of a JVM outside of its heap.
_LEAST_OVERHEAD_MB, _OVERHEAD_FACTOR, _HEAP_MB = 384, 0.1, 1024
#: What Spark puts into the settings of a driver in Python that it starts on Kubernetes itself (``--deploy-mode cluster``).
_FACTOR_OF_SUBMITTED = "0.4"
#: Storm's keys for the memory of each instance (A9).
_DECLARED = (
    "topology.component.resources.onheap.memory.mb",
    "topology.component.resources.offheap.memory.mb",
)
_UNITS = {"": 0, "k": -10, "kb": -10, "m": 0, "mb": 0, "g": 10, "gb": 10, "t": 20, "tb": 20}
#: Cluster managers that end what takes more memory than was requested.
_LIMITING = ("yarn", "k8s:")


@dataclass(frozen=True)
class WorkerNeeds:
    """The megabytes (MiB) that a worker may need."""

    python_mb: int
    #: For tuples that wait, up to the high mark at which spouts are slowed down.
    queues_mb: int
    #: For replies that Spark may request again.
    replies_mb: int
    #: What the worker's components declare.
    declared_mb: int

    @property
    def memory_mb(self) -> int:
        """All of it."""
        return self.python_mb + self.queues_mb + self.replies_mb + self.declared_mb

    @property
    def addresses_mb(self) -> int:
        """The address space that the worker may need, which ``spark.executor.pyspark.memory`` limits."""
        return self.memory_mb + _ADDRESSES_MB

    def __str__(self) -> str:
        parts = {
            "Python": self.python_mb,
            "tuples that wait": self.queues_mb,
            "kept replies": self.replies_mb,
            "its components": self.declared_mb,
        }
        return f"{self.memory_mb} MB ({', '.join(f'{name} {size}' for name, size in parts.items() if size)})"


@dataclass(frozen=True)
class ExecutorNeeds:
    """What one Spark executor needs for ``workers`` workers beside its JVM, if it runs ``slots`` tasks at once."""

    workers: int
    slots: int
    worker: WorkerNeeds
    overhead_mb: int


def worker_needs(plan: PhysicalPlan) -> WorkerNeeds:
    """Return what a worker may need: the one whose components declare most.

    >>> from stormspark import TopologyBuilder
    >>> from stormspark.plan import plan_topology
    >>> from stormspark.testing import TestWordSpout
    >>> builder = TopologyBuilder()
    >>> _ = builder.set_spout("words", TestWordSpout(), parallelism=4).set_memory_load(200)
    >>> print(worker_needs(plan_topology(builder.create_topology("demo", {"topology.workers": 2}))))
    620 MB (Python 120, tuples that wait 100, its components 400)
    """
    settings = plan.settings
    declared = [0.0] * plan.workers
    for task in plan.tasks.values():
        own = plan.components[task.component].own_conf
        declared[task.worker] += sum(float(own.get(key) or 0) for key in _DECLARED)
    replies = settings.replies_memory_bytes if plan.last_superstep else 0
    return WorkerNeeds(
        _PYTHON_MB,
        _mebibytes_of(settings.worker_byte_marks[0]),
        _mebibytes_of(replies),
        math.ceil(max(declared)),
    )


def executor_needs(
    plan: PhysicalPlan, conf: Mapping[str, Any], executors: int | None = None
) -> ExecutorNeeds:
    """Return what each Spark executor needs.

    ``conf`` are Spark's settings. ``executors`` counts if it is known; otherwise the settings say how many there are, or there is
    a worker for each task that an executor runs at once.
    """
    at_once = slots(_number(conf, _CORES) or 1, conf)
    executors = executors or _number(conf, "spark.executor.instances")
    workers = math.ceil(plan.workers / executors) if executors else min(at_once, plan.workers)
    worker = worker_needs(plan)
    overhead = workers * worker.memory_mb + at_once * _CARRIER_MB + _overhead_of_jvm(conf)
    return ExecutorNeeds(workers, at_once, worker, math.ceil(overhead / 50) * 50)


def shortfalls(needs: ExecutorNeeds, conf: Mapping[str, Any], master: str) -> Iterator[str]:
    """Yield a sentence for each setting of Spark that is too small for ``needs``: what is needed, what is set, what to do.

    ``conf`` are the settings of a driver, see `submitted_to`. Only YARN and Kubernetes limit a container's memory.
    ``spark.executor.pyspark.memory`` is a limit everywhere.
    """
    each = "its worker" if needs.workers == 1 else f"its {needs.workers} workers"
    given = mebibytes(conf.get(OVERHEAD))
    limited = mebibytes(conf.get(PYSPARK_MEMORY))
    cores = _number(conf, _CORES) or 1
    if limits_memory(master):
        has = present_overhead(conf, master)
        has += limited or 0  # the container is larger by that
        if has < needs.overhead_mb:
            is_set = (
                f"{OVERHEAD} is {conf[OVERHEAD]}"
                if given is not None
                else f"{OVERHEAD} is not set, so there are"
            )
            yield (
                f"each executor needs about {needs.overhead_mb} MB beside its JVM for {each} of {needs.worker} and for Spark's "
                f"Python, but {is_set}{'' if given is not None else f' {has} MB'}: the cluster may kill it; set {OVERHEAD} to "
                f"{needs.overhead_mb}m or more"
            )
        at_once = cores if needs.workers > cores else 0
        if at_once:
            yield (
                f"each executor has {needs.workers} workers, but {_CORES} is {cores}, so at most {cores} of them compute at the "
                f"same time: set {_CORES} to {needs.workers}, or request more executors"
            )
    if limited is not None and limited // cores < needs.worker.addresses_mb:
        yield (
            f"{PYSPARK_MEMORY} is {conf[PYSPARK_MEMORY]}, so Spark limits each Python process, and each worker, to "
            f"{limited // cores} MB of addresses, but a worker needs about {needs.worker.addresses_mb} MB of them: remove that "
            f"setting and use {OVERHEAD}, or set it to {needs.worker.addresses_mb * cores}m or more"
        )


def requested_executors(conf: Mapping[str, Any], master: str) -> int | None:
    """Return how many executors a session on ``master`` requests; None if the settings don't say so.

    With dynamic allocation, they don't, because Spark requests executors while tasks wait.

    >>> requested_executors({}, "yarn"), requested_executors({"spark.executor.instances": "5"}, "k8s://host")
    (2, 5)
    >>> requested_executors({"spark.cores.max": "12", "spark.executor.cores": "4"}, "spark://host:7077")
    3
    >>> requested_executors({"spark.dynamicAllocation.enabled": "true"}, "yarn") is None
    True
    """
    if str(conf.get(f"{_DYNAMIC}.enabled")).lower() == "true":
        return None
    if local_cluster := re.match(r"local-cluster\[\s*(\d+)", master):
        return int(local_cluster[1])
    instances = _number(conf, "spark.executor.instances")
    if instances is not None:
        return instances
    if limits_memory(master):
        return 2
    most, each = _number(conf, "spark.cores.max"), _number(conf, _CORES)
    if master.startswith("spark:") and most is not None and each is not None:
        return most // each
    # Otherwise a standalone cluster starts one for each Spark worker, and the number of Spark workers is unknown.
    return None


def requested_cores(conf: Mapping[str, Any], master: str) -> int | None:
    """Return for how many tasks at once a session on ``master`` requests executors; None if the settings don't say so.

    >>> requested_cores({}, "yarn"), requested_cores({"spark.executor.cores": "4"}, "k8s://host")
    (2, 8)
    >>> growing = {"spark.dynamicAllocation.enabled": "true", "spark.dynamicAllocation.minExecutors": "3"}
    >>> requested_cores(growing, "yarn"), requested_cores({}, "spark://host:7077") is None
    (3, True)
    """
    if not limits_memory(master):
        return None
    executors = requested_executors(conf, master)
    if executors is None:
        # Spark adds further ones only while tasks wait for them.
        names = ("spark.executor.instances", f"{_DYNAMIC}.minExecutors", f"{_DYNAMIC}.initialExecutors")
        wanted = max(1, *(_number(conf, name) or 0 for name in names))
        executors = min(wanted, _number(conf, f"{_DYNAMIC}.maxExecutors") or wanted)
    return executors * slots(_number(conf, _CORES) or 1, conf)


def submitted_to(master: str, conf: Mapping[str, Any], *, in_cluster: bool) -> Mapping[str, Any]:
    """Return the settings that a driver has, if it is submitted with ``conf``."""
    if in_cluster and master.startswith("k8s:"):
        return {_FACTOR_ON_KUBERNETES: _FACTOR_OF_SUBMITTED, **conf}
    return conf


def default_overhead(conf: Mapping[str, Any], master: str) -> int:
    """Return the overhead in megabytes that Spark requests if `OVERHEAD` is not set, with the settings of a driver.

    >>> default_overhead({}, "yarn"), default_overhead({"spark.executor.memory": "8g"}, "k8s://host")
    (384, 819)
    >>> default_overhead(submitted_to("k8s://host", {"spark.executor.memory": "8g"}, in_cluster=True), "k8s://host")
    3276
    """
    factors = (_FACTOR, _FACTOR_ON_KUBERNETES) if master.startswith("k8s:") else (_FACTOR,)
    factor = next(
        (found for key in factors if (found := _fraction(conf.get(key))) is not None), _OVERHEAD_FACTOR
    )
    least = mebibytes(conf.get(_LEAST))
    heap = mebibytes(conf.get(_HEAP)) or _HEAP_MB
    return max(_LEAST_OVERHEAD_MB if least is None else least, int(heap * factor))


def limits_memory(master: str) -> bool:
    """Whether the cluster ends an executor that takes more memory than was requested.

    >>> [limits_memory(master) for master in ("yarn", "k8s://https://host:443", "spark://host:7077", "local[4]")]
    [True, True, False, False]
    """
    return master.startswith(_LIMITING)


def present_overhead(conf: Mapping[str, Any], master: str) -> int:
    """Return the overhead in MiB that Spark requests for an executor with the settings of a driver.

    >>> present_overhead({OVERHEAD: "2g"}, "yarn"), present_overhead({}, "yarn")
    (2048, 384)
    """
    given = mebibytes(conf.get(OVERHEAD))
    return default_overhead(conf, master) if given is None else given


def mebibytes(value: object) -> int | None:
    """Read an amount of memory as Spark writes it. A number without a unit is in MiB. Return None for any other value.

    >>> [mebibytes(value) for value in ("2g", "512m", "1024", 7, "1 t", "524288k", "much", None)]
    [2048, 512, 1024, 7, None, 512, None, None]
    """
    found = re.fullmatch(r"(\d+)([a-z]{0,2})", str(value).lower())
    if found is None or found[2] not in _UNITS:
        return None
    shift = _UNITS[found[2]]
    return int(found[1]) << shift if shift >= 0 else int(found[1]) >> -shift


def _mebibytes_of(size: int) -> int:
    return math.ceil(size / (1 << 20))


def _overhead_of_jvm(conf: Mapping[str, Any]) -> int:
    heap = mebibytes(conf.get(_HEAP)) or _HEAP_MB
    return max(_LEAST_OVERHEAD_MB, math.ceil(heap * _OVERHEAD_FACTOR))


def _fraction(value: object) -> float | None:
    try:
        return float(str(value))
    except ValueError:
        return None


def _number(conf: Mapping[str, Any], key: str) -> int | None:
    text = str(conf.get(key, ""))
    return int(text) if text.isdecimal() and int(text) else None
