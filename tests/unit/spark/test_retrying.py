"""When a batch that failed is tried again, and for how long."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark")

from stormspark.spark.retrying import Retries, is_outside


def run(
    retries: Retries, seconds: float, *, outside: bool, batch: int = 7, attempt_secs: float = 0.5
) -> tuple[float, str, list[str]]:
    """Fail again and again until it is given up, or until ``seconds`` have passed; when and why it ended, and what was logged."""
    now, attempt, said = 0.0, 0, []
    while now < seconds:
        now += attempt_secs
        end = retries.failed(batch, "why", outside=outside, now=now)
        if end is not None:
            return now, end, said
        attempt += 1
        text = retries.to_log(attempt, now)
        if text is not None:
            said.append(text)
        now += retries.delay_secs
    return now, "", said


def retries(most_attempts: int = 10, outage_secs: float = 3600.0, longest: float = 30.0) -> Retries:
    return Retries(most_attempts, outage_secs, longest)


@pytest.mark.parametrize("attempt_secs", [0.01, 0.5, 20.0, 90.0])
def test_ten_minutes_without_storage_end_nothing(attempt_secs: float) -> None:
    _, why, said = run(retries(), 600, outside=True, attempt_secs=attempt_secs)
    assert why == ""
    assert len(said) <= 3 + 600 / 60 + 1, "one line a minute, after the first ones"
    assert len(said) >= 600 / max(90.0, attempt_secs + 30) - 1
    assert "has failed for" in said[-1] and "why" in said[-1]


def test_an_outage_ends_the_topology_after_the_time_that_was_given() -> None:
    ended, why, _ = run(retries(outage_secs=600), 10_000, outside=True)
    assert 600 <= ended <= 640
    assert "stormspark.outage.timeout.secs" in why and "why" in why


@pytest.mark.parametrize("most", [1, 2, 10])
def test_what_user_code_does_ends_the_topology_after_some_attempts(most: int) -> None:
    """W22: at once, or within a minute."""
    ended, why, said = run(retries(most), 10_000, outside=False)
    assert why == f"batch 7 failed {most} times (stormspark.max.attempts): why"
    assert ended < 60 and len(said) == most - 1


def test_an_outage_does_not_use_up_the_attempts_of_user_code() -> None:
    some = retries(3)
    for now in range(100):
        assert some.failed(7, "away", outside=True, now=float(now)) is None
    assert some.failed(7, "raised", outside=False, now=101.0) is None
    assert some.failed(7, "raised", outside=False, now=102.0) is None
    assert some.failed(7, "raised", outside=False, now=103.0) is not None


def test_a_batch_that_succeeds_ends_the_row() -> None:
    some = retries(2, outage_secs=100)
    for batch in range(50):
        assert some.failed(batch, "raised", outside=False, now=batch * 90.0) is None
        assert some.failed(batch, "away", outside=True, now=batch * 90.0) is None
        assert some.failures == 2


def test_a_query_that_does_not_come_to_its_batch_goes_on_with_the_row() -> None:
    some = retries(outage_secs=100)
    some.failed(7, "away", outside=True, now=0.0)
    some.failed(-1, "away", outside=True, now=50.0)
    assert some.batch == 7 and some.failures == 2
    assert some.failed(-1, "away", outside=True, now=100.0) is not None


def test_an_hour_after_an_outage_another_one_may_last_as_long() -> None:
    some = retries(outage_secs=600)
    assert some.failed(7, "away", outside=True, now=0.0) is None
    assert some.failed(900, "away", outside=True, now=4000.0) is None
    assert some.failed(900, "away", outside=True, now=4500.0) is None


@pytest.mark.parametrize(
    "text",
    [
        "org.apache.hadoop.fs.ParentNotDirectoryException: /mnt/checkpoint (is not a directory)",
        "java.io.FileNotFoundException: File file:/x does not exist",
        "Job aborted due to stage failure: ... ExecutorLostFailure (executor 1 exited caused by one of the running tasks)",
        "FetchFailed(BlockManagerId(0, host, 1, None), shuffleId=3, mapIndex=0, message=",
        "java.net.ConnectException: Connection refused",
        "org.apache.kafka.common.errors.TimeoutException: Timed out waiting for a node assignment",
        '  File "spout.py", line 3\nConnectionRefusedError: [Errno 111] Connection refused',
        "software.amazon.awssdk.core.exception.SdkClientException: Unable to load credentials",
    ],
)
def test_words_for_what_comes_back(text: str) -> None:
    assert is_outside(text)


@pytest.mark.parametrize(
    "text",
    [
        "ValueError: no",
        "[UNRESOLVED_COLUMN] no such column",
        "java.lang.NullPointerException",
        "worker 1 was lost: its process is gone",
    ],
)
def test_words_for_what_does_not(text: str) -> None:
    assert not is_outside(text)


def test_what_failed_before_a_batch_succeeded_counts_no_more() -> None:
    """A blip of storage in batch 7, then two hours of good batches; what comes then is new, and may not even have a number."""
    some = retries(outage_secs=3600.0)
    assert some.failed(7, "away", outside=True, now=0.0) is None
    some.succeeded()
    assert some.failed(-1, "away", outside=True, now=7200.0) is None
    assert some.failures == 1 and some.delay_secs == 0.0
    assert some.failed(-1, "away", outside=True, now=10_800.0) is not None


def test_failures_of_user_code_that_are_days_apart_are_not_in_a_row() -> None:
    some = retries(3)
    for day in range(10):
        assert some.failed(day % 2 * 8 - 1, "raised", outside=False, now=day * 9e4) is None
        assert some.failed(-1, "raised", outside=False, now=day * 9e4 + 1) is None
        some.succeeded()
