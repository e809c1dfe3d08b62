"""The ``with`` block of a running topology: it ends the topology in any case, and hides no error."""

from __future__ import annotations

import logging

import pytest

from stormspark.running import TopologyHandle
from tests.unit.scripted_topology import Moment
from tests.unit.ui.test_look import Planned


class Handle(TopologyHandle, Planned):
    """A scripted topology with what both engines' topologies offer."""

    interrupts_stop = False

    def stop(self) -> None:
        super().stop()
        if self.interrupts_stop:
            raise KeyboardInterrupt


@pytest.fixture
def running() -> Handle:
    return Handle([Moment(0.0, executed=3)])


def test_the_end_of_the_block_stops_the_topology(running):
    with running as inside:
        assert inside is running
        assert running.calls == []
    assert running.calls == ["stop"]


def test_an_ended_topology_is_not_stopped_again():
    running = Handle([Moment(0.0)], ends_at=1.0)
    with running:
        running.wait(1.0)
    assert running.calls == []


def test_an_exception_of_the_block_goes_on_and_the_topology_stops(running):
    with pytest.raises(ZeroDivisionError) as caught, running:
        _ = 1 / 0
    assert running.calls == ["stop"]
    assert not getattr(caught.value, "__notes__", [])


def test_the_topologys_error_is_raised_at_the_end_of_the_block():
    error = ValueError("no number")
    with (
        pytest.raises(ValueError, match="no number") as caught,
        Handle([Moment(0.0)], ends_at=0.0, error=error),
    ):
        pass
    assert caught.value is error


def test_the_topologys_error_is_a_note_where_the_block_raised_its_own():
    with (
        pytest.raises(ZeroDivisionError) as caught,
        Handle([Moment(0.0)], ends_at=0.0, error=ValueError("no number")),
    ):
        _ = 1 / 0
    assert caught.value.__notes__ == [
        "and topology 'scripted' had stopped with an error: ValueError: no number"
    ]


def test_the_block_may_raise_the_topologys_error_itself():
    """As `run_until_idle` does."""
    error = ValueError("no number")
    with (
        pytest.raises(ValueError, match="no number"),
        Handle([Moment(0.0)], ends_at=0.0, error=error),
    ):
        raise error
    assert not getattr(error, "__notes__", [])


def test_an_interrupt_in_the_block_stops_and_says_so(running, caplog):
    with caplog.at_level(logging.WARNING), pytest.raises(KeyboardInterrupt), running:
        raise KeyboardInterrupt
    assert running.calls == ["stop"]
    assert caplog.messages == [
        "interrupted: topology scripted stops at the end of its batch; interrupt again to end it at once"
    ]


def test_an_interrupt_while_it_stops_kills(caplog):
    running = Handle([Moment(0.0)], stop_takes=60.0)
    running.interrupts_stop = True
    with caplog.at_level(logging.WARNING), pytest.raises(KeyboardInterrupt), running:
        pass
    assert running.calls == ["stop", "kill"]
    assert "ends at once, without close and cleanup" in caplog.text


def test_the_repr_is_one_line(running):
    assert repr(running).startswith("<Handle 'scripted' runs (0 s); 0 tuples/s on average")
    assert "<h4>scripted runs" in running._repr_html_()


def test_links_are_those_of_the_logs(running):
    assert running.links() == {}
    running.log_folder = "/var/log/a b"
    assert running.links() == {"logs: /var/log/a b": "file:///var/log/a%20b"}
