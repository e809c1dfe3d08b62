"""How many partitions a superstep has."""

from hypothesis import given
from hypothesis import strategies as st

from stormspark.plan.partitions import partitions_for


@given(st.integers(1, 5000), st.integers(0, 5000))
def test_each_worker_is_in_one_partition_and_none_is_empty(workers: int, wanted: int) -> None:
    partitions = partitions_for(workers, wanted)
    sizes = [len(range(partition, workers, partitions)) for partition in range(partitions)]
    assert sum(sizes) == workers
    assert min(sizes) >= 1
    assert max(sizes) - min(sizes) <= 1
    if not wanted:
        assert max(sizes) <= 8
        assert partitions == workers or partitions >= 32


@given(st.integers(1, 32))
def test_a_small_topology_has_a_partition_for_each_worker(workers: int) -> None:
    assert partitions_for(workers) == workers
