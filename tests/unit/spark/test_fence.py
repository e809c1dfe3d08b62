"""Two drivers on one checkpoint: the later one has it, or is refused."""

from __future__ import annotations

import json
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest

pytest.importorskip("pyspark")

from stormspark.checkpoint.control import LocalControlFile, next_generation
from stormspark.errors import CheckpointError, FencedError
from stormspark.spark.fence import Fence, Submission, submission_of
from tests.waiting import wait_for


def plan(in_use="take-over"):
    return SimpleNamespace(
        topology="wc",
        components={"spout": None},
        sources=[],
        settings=SimpleNamespace(checkpoint_in_use=in_use),
    )


@pytest.fixture
def file(tmp_path):
    return LocalControlFile(tmp_path)


def never(seconds):
    pytest.fail("it waits for a driver that need not be waited for")


def elsewhere(tmp_path):
    """Make the driver that uses the checkpoint one of another host."""
    control = tmp_path / "stormspark" / "control.json"
    fields = json.loads(control.read_text())
    fields["driver"]["host"] = "elsewhere"
    control.write_text(json.dumps(fields))
    return fields["driver"]["id"]


def test_the_later_driver_has_the_checkpoint(file):
    first = Fence(file, plan())
    first.check()
    second = Fence(file, plan(), never)
    assert (first.generation, second.generation) == (0, 1)
    with pytest.raises(
        FencedError, match=r"belongs to another driver now: process \d+ on .* as generation 1"
    ):
        first.check()
    second.check()


def test_of_two_drivers_that_start_at_once_one_is_fenced_off(file, monkeypatch):
    """Both read the same generation."""
    fences = []

    def late(file, plan, driver, application):
        control = next_generation(file, plan, driver, application)
        if not fences:
            fences.append(None)
            fences[0] = Fence(file, plan)
            file.write(json.dumps(before | {"driver": vars(driver)}).encode())
        return control

    Fence(file, plan())
    before = json.loads(file.read()) | {"generation": 1}
    monkeypatch.setattr("stormspark.spark.fence.next_generation", late)
    last = Fence(file, plan())
    last.check()
    with pytest.raises(FencedError):
        fences[0].check()


def test_a_driver_of_an_earlier_version_fences_off_too(file):
    fence = Fence(file, plan())
    next_generation(file, plan())
    with pytest.raises(FencedError, match="a driver of an earlier version"):
        fence.check()


def test_a_folder_that_was_deleted_is_not_another_driver(file, tmp_path):
    fence = Fence(file, plan())
    (tmp_path / "stormspark" / "control.json").unlink()
    fence.check()


def test_a_later_driver_may_be_refused(file):
    first = Fence(file, plan("refuse"))
    with pytest.raises(
        CheckpointError, match=r"is in use by another driver, process \d+ on .*: stop that one"
    ):
        Fence(file, plan("refuse"), never)
    first.check()
    Fence(file, plan("take-over"), never)
    with pytest.raises(FencedError):
        first.check()


def test_nobody_is_refused_after_an_end(file, tmp_path):
    first = Fence(file, plan("refuse"))
    first.leave()
    Fence(file, plan("refuse"), never)
    assert len(list((tmp_path / "stormspark").glob("driver-*"))) == 1


def test_nobody_is_refused_because_of_a_process_that_was_killed(file, tmp_path):
    Fence(file, plan("refuse"))
    control = tmp_path / "stormspark" / "control.json"
    fields = json.loads(control.read_text())
    fields["driver"]["started"] += 1  # a later process has this pid now
    control.write_text(json.dumps(fields))
    Fence(file, plan("refuse"), never)


def test_a_driver_that_may_be_taken_over_from_is_not_taken_over_by_one_that_refuses(file):
    """The setting of the driver that starts decides."""
    first = Fence(file, plan("take-over"))
    with pytest.raises(CheckpointError, match="is in use by another driver"):
        Fence(file, plan("refuse"), never)
    first.check()


def test_a_process_in_another_container_of_this_host_lives_if_its_beats_come(file):
    """It has the same host name perhaps, but its process can't be seen."""
    first = Fence(file, plan())
    driver = json.loads(file.read())["driver"]["id"]
    file.write_beat(driver, b"1 another-boot pid:[4026531836]")
    waited = []

    def wait(seconds):
        waited.append(seconds)
        file.write_beat(driver, b"2 another-boot pid:[4026531836]")

    with pytest.raises(CheckpointError, match="is in use by another driver"):
        Fence(file, plan("refuse"), wait)
    assert len(waited) == 1
    first.check()


def test_beats_come_while_a_driver_waits_and_end_with_it(file, tmp_path, monkeypatch):
    """On a thread, because the others may wait for a Spark executor for minutes."""
    monkeypatch.setattr("stormspark.spark.fence.BEAT_SECS", 0.001)
    fence = Fence(file, plan())
    fence.keep_beating()
    (beats,) = (tmp_path / "stormspark").glob("driver-*")
    first = beats.read_bytes()
    wait_for(lambda: beats.read_bytes() not in (first, b""))
    fence.leave()
    assert not beats.exists()


@pytest.mark.parametrize("lives", [True, False])
def test_a_driver_on_another_host_lives_if_its_beats_come(file, tmp_path, lives):
    Fence(file, plan("refuse"))
    driver = elsewhere(tmp_path)
    waited = []

    def wait(seconds):
        waited.append(seconds)
        if lives and sum(waited) > 4:
            file.write_beat(driver, b"2")

    if lives:
        with pytest.raises(CheckpointError, match="on elsewhere"):
            Fence(file, plan("refuse"), wait)
    else:
        Fence(file, plan("refuse"), wait)
        assert sum(waited) == 15


def test_an_attempt_of_yarn_does_not_take_over_from_an_application_that_was_submitted_later(file):
    """YARN starts the fenced driver again. Both applications would take the checkpoint from each other."""
    first = Fence(file, plan(), submission=Submission("first", 1))
    second = Fence(file, plan(), never, submission=Submission("second", 1))
    with pytest.raises(FencedError):
        first.check()
    with pytest.raises(FencedError, match=r"process \d+ on .* has taken it over from an earlier attempt"):
        Fence(file, plan(), never, submission=Submission("first", 2))
    second.check()
    second.leave()
    assert Fence(file, plan(), never, submission=Submission("first", 3)).generation == 2


def test_a_driver_that_takes_over_while_an_attempt_waits_whether_another_lives_is_not_taken_over_from(
    file, tmp_path
):
    Fence(file, plan(), submission=Submission("first", 1))
    Fence(file, plan(), never, submission=Submission("second", 1))
    elsewhere(tmp_path)
    third = []

    def wait(seconds):
        if not third:
            third.append(Fence(file, plan(), never, submission=Submission("third", 1)))

    with pytest.raises(FencedError):
        Fence(file, plan(), wait, submission=Submission("first", 2))
    third[0].check()


def test_drivers_of_other_versions_can_read_the_control_file(file, tmp_path):
    """Earlier ones take all fields of a driver as they are. Later ones may write more of them."""
    Fence(file, plan(), submission=Submission("first", 1))
    control = tmp_path / "stormspark" / "control.json"
    fields = json.loads(control.read_text())
    assert fields["driver"].keys() == {"id", "host", "pid", "started"}
    fields["driver"]["mood"] = "good"
    control.write_text(json.dumps(fields))
    assert Fence(file, plan()).generation == 1


def test_an_attempt_of_yarn_goes_on_at_once_after_an_earlier_one(file, tmp_path):
    Fence(file, plan(), submission=Submission("first", 1))
    elsewhere(tmp_path)
    assert Fence(file, plan(), never, submission=Submission("first", 2)).generation == 1


@pytest.mark.parametrize(("attempt", "found"), [(None, ("", 1)), ("2", ("application_1", 2))])
def test_only_yarn_counts_the_attempts_of_an_application(attempt, found):
    session = MagicMock()
    context = session.sparkContext._jsc.sc()
    context.applicationId.return_value = "application_1"
    context.applicationAttemptId().isDefined.return_value = attempt is not None
    context.applicationAttemptId().get.return_value = attempt
    assert submission_of(session) == found
