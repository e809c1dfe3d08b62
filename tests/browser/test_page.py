"""The web page of a topology, as somebody sees it: buttons, hostile names, a driver that comes back, phones, dark."""

from __future__ import annotations

import json
import re
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import uvicorn

from stormspark import BasicBolt, FailedException, Fields, TopologyBuilder
from stormspark.backpressure import BoltPressure, LimitChange, Pressure, SpoutPressure
from stormspark.checkpoint.state_components import StatePlace
from stormspark.driver.error_log import ErrorLog
from stormspark.local.topology import LocalTopology
from stormspark.metrics import Histogram, TaskCounters
from stormspark.operations import registry
from stormspark.operations.page.finished import Finished, read_finished
from stormspark.operations.page.one_page import Links, one_page
from stormspark.operations.registry import entry_of
from stormspark.plan import plan_topology
from stormspark.testing import FixedTupleSpout, TestWordCounter
from stormspark.worker.step import ErrorReport
from stormspark.worker.stories.story import Holder, Story
from tests.browser.chromium import chromium
from tests.unit.local.test_taken_back import Count
from tests.unit.operations.test_page import write_state
from tests.unit.operations.test_server import Words, serving
from tests.waiting import wait_for

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.slow

HOSTILE = "x<img src=q onerror=alert(1)>\"'&</script><script>alert(2)</script>"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir="/tmp") as made:  # sockets have short names
        place = Path(made, "registry")
        monkeypatch.setattr(registry, "registry_folder", lambda: place)
        yield place


class Busy(Words):
    """A topology in which something happens between two looks, and in which a bolt is too slow."""

    def __init__(self, conf: dict[str, object] | None = None) -> None:
        super().__init__(conf=conf)
        builder = TopologyBuilder()
        builder.set_spout("lines", FixedTupleSpout([], Fields("line")), parallelism=2)
        builder.set_bolt("count", TestWordCounter(), parallelism=3).set_num_tasks(5).shuffle_grouping("lines")
        builder.set_bolt(HOSTILE, TestWordCounter()).shuffle_grouping("lines").shuffle_grouping("count")
        self.plan = plan_topology(builder.create_topology("words"), {"topology.workers": 2, **(conf or {})})
        self.pressed = Pressure(
            {"lines": SpoutPressure(200, "count", {"count": 4000.0}, max_pending=1000)},
            {
                name: BoltPressure(700_000, 60_000_000, 1_000_000, 104_857_600, 2.1, False)
                for name in ("count", HOSTILE)
            },
            1,
            [LimitChange(3.0, "lines", 200, "count")],
        )
        self.began = time.monotonic()

    def by_task(self) -> dict[int, TaskCounters]:
        return self.counters

    @property
    def batches(self) -> int:  # type: ignore[override]
        return int((time.monotonic() - self.began) * 4)

    @property
    def counters(self) -> dict[int, TaskCounters]:  # type: ignore[override]
        done = self.batches * 100
        spent = Histogram()
        spent.add(0.002, max(1, done))
        return {
            task.id: TaskCounters(emitted=done, transferred=done, executed=done, acked=done, latency=spent)
            for task in self.plan.tasks.values()
        }

    @counters.setter
    def counters(self, value: object) -> None:
        pass


class Ui:
    """The server of `stormspark ui`, in a thread."""

    def __init__(self, finished: dict[str, Finished] | None = None) -> None:
        self.links = Links()
        config = uvicorn.Config(
            one_page(self.links, finished),
            port=0,
            log_config=None,
            lifespan="off",
            ws="none",
            timeout_graceful_shutdown=1,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, daemon=True)
        self._thread.start()
        wait_for(lambda: self._server.started)
        port = self._server.servers[0].sockets[0].getsockname()[1]
        self.address = f"http://127.0.0.1:{port}/"

    @property
    def link(self) -> str:
        return f"{self.address}#once={self.links.once}"

    def close(self) -> None:
        self._server.should_exit = True
        self._thread.join(10)


@pytest.fixture
def ui() -> Iterator[Ui]:
    served = Ui()
    yield served
    served.close()


@pytest.fixture
def words() -> Iterator[Busy]:
    running = Busy()
    server = serving(running)
    yield running
    server.close()


class Seen:
    """A page, with all that went wrong in it. Network errors are left out: they are what some tests are about."""

    def __init__(self, browser: Browser, **more: Any) -> None:
        self.context = browser.new_context(**more)
        self.page: Page = self.context.new_page()
        self.page.set_default_timeout(90_000)  # the machine may be busy
        self.wrong: list[str] = []
        self.page.on("console", lambda said: self._said(said.type, said.text))
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("dialog", lambda dialog: self.wrong.append(f"a dialog: {dialog.message}"))

    def _said(self, kind: str, text: str) -> None:
        if kind in ("error", "warning") and not text.startswith("Failed to load resource"):
            self.wrong.append(text)

    def open(self, address: str) -> Page:
        self.page.goto(address)
        self.shown()
        return self.page

    def shown(self, times: int = 1) -> None:
        """Wait until the page has shown what it was told, so many times from now on."""
        for _ in range(times):
            turn = self.page.evaluate("document.documentElement.dataset.shown")
            self.page.wait_for_selector(f'html[data-shown]:not([data-shown="{turn}"])', state="attached")

    def text(self, selector: str, wanted: str | re.Pattern[str]) -> None:
        """Wait until there is an element with this text."""
        self.page.locator(selector).filter(has_text=wanted).first.wait_for()

    def close(self) -> None:
        self.context.close()
        assert self.wrong == []


@pytest.fixture
def seen(browser: Browser) -> Iterator[Seen]:
    one = Seen(browser, viewport={"width": 1280, "height": 900})
    yield one
    one.close()


def opened(seen: Seen, ui: Ui) -> Page:
    """Open the page of the topology by the list."""
    page = seen.page
    page.goto(ui.link)
    page.get_by_role("link", name="words").click()
    page.wait_for_url("**/t/words/")
    seen.shown(2)
    return page


def test_the_list_leads_to_the_page_and_the_verdict_comes_first(seen: Seen, ui: Ui, words: Busy) -> None:
    page = opened(seen, ui)
    assert page.title() == "⚠ words — stormspark"  # a worker is missing
    assert "words is in trouble" in page.inner_text("#verdict")
    assert "spouts are held back by count" in page.inner_text("#verdict")
    assert "#" not in page.url
    assert page.get_by_role("heading", name="words").count() == 1
    assert re.search(r"tuples per second\s+[\d,]+", page.inner_text("#figures"))
    assert page.locator("#charts canvas").count() == 5
    assert page.locator("#graph .box").count() == 3


def test_every_button(seen: Seen, ui: Ui, words: Busy, tmp_path: Path) -> None:
    page = opened(seen, ui)
    button = page.get_by_role
    assert page.locator("#actions button").all_inner_texts() == ["Deactivate", "Rebalance…", "Kill…"]
    button("button", name="Deactivate").click()
    button("button", name="Cancel").click()
    assert words.told == []
    button("button", name="Deactivate").click()
    page.locator("dialog button[type=submit]").click()
    seen.text("#status", "INACTIVE")
    button("button", name="Activate").click()
    page.locator("dialog button[type=submit]").click()
    seen.text("#status", re.compile("^ACTIVE$"))
    assert words.told == ["deactivate", "activate"]

    # A component, by the graph, by the table and by the keyboard.
    page.locator("#graph .box").first.click()
    seen.text("#component h3", "spout lines")
    assert page.locator("#scope").input_value() == "lines"
    page.locator("#components button", has_text="count").click()
    seen.text("#component h3", "bolt count")
    box = page.locator("#graph .box").nth(1)
    box.focus()
    page.keyboard.press("Enter")  # it is chosen already
    page.wait_for_selector("#component h3", state="detached")
    page.keyboard.press("Enter")
    seen.text("#component h3", "bolt count")
    page.locator("#scope").select_option("")
    page.locator("#range").select_option("21600")
    seen.shown(2)
    page.locator("#verdict button").first.click()

    for name, wanted in {
        "queues": "(marks 500,000 and 1,000,000)",
        "batches": "Tuples are processed at least once",
        "workers": "starts",
        "tasks": "count[4]",
        "stories": "look again",
        "logs": "log to the program that runs it",
    }.items():
        page.locator(f"#{name} summary").click()
        seen.text(f"#{name}", wanted)
    page.get_by_placeholder("component or task").fill("lines[1]")
    seen.text("#tasks", "1 task")
    page.get_by_role("button", name="look again").click()

    with page.expect_download() as download:
        page.get_by_role("button", name="save this page as JSON").click()
    saved = tmp_path / "saved.json"
    download.value.save_as(saved)
    assert read_finished(saved).name == "words"

    button("button", name="Rebalance…").click()
    page.get_by_label("wait, in seconds").fill("0")
    page.get_by_label("workers", exact=True).fill("3")
    page.get_by_label("executors of count").fill("2")
    page.locator("dialog button[type=submit]").click()
    wait_for(lambda: "lay out 3" in words.told, 60)
    assert words.plan.components["count"].parallelism == 2
    seen.text("#status", re.compile("^ACTIVE$"))

    button("button", name="Kill…").click()
    page.locator("dialog input").fill("600")
    page.locator("dialog button[type=submit]").click()
    seen.text("#status", "KILLED")
    seen.text("#verdict", "is killed, and ends soon")
    assert page.locator("#actions button").all_inner_texts() == ["Kill…"]
    button("button", name="Kill…").click()
    page.locator("dialog input").fill("0")
    page.locator("dialog button[type=submit]").click()
    assert words.ended.wait(60)


def test_a_refusal_is_shown_in_the_dialog(seen: Seen, ui: Ui, words: Busy) -> None:
    page = opened(seen, ui)
    page.get_by_role("button", name="Deactivate").click()
    words.deactivate = lambda: 1 / 0  # type: ignore[method-assign,assignment,return-value]
    page.locator("dialog button[type=submit]").click()
    seen.text("dialog [role=alert]", "division by zero")
    page.keyboard.press("Escape")
    seen.shown()


def test_hostile_names_values_and_10_000_errors_are_only_shown(
    seen: Seen, ui: Ui, words: Busy, tmp_path: Path
) -> None:
    logs = tmp_path / "logs"
    logs.mkdir(mode=0o700)
    words.log_folder = str(logs)
    (logs / f"{'<b>x'}-0.log").write_text(f"one {HOSTILE}\n")
    log = ErrorLog()
    task = words.plan.components[HOSTILE].tasks[0]
    for number in range(10_000):
        log.add(0, ErrorReport(HOSTILE, task, f"ValueError: {HOSTILE} {number}"), time.time())
    words.reported = dict(log.errors())
    counted = Busy.counters.fget(words)  # type: ignore[attr-defined]
    counted[task].errors = 10_000
    words.by_task = lambda: counted  # type: ignore[method-assign]
    words.statistics = lambda found=words.statistics: _with_errors(found(), 10_000)  # type: ignore[method-assign,misc]
    held = Holder(HOSTILE, "held", 1, 29.0)
    words.told_stories = (Story("00ab", "timed out", HOSTILE, HOSTILE, HOSTILE, 1.0, holders=(held,)),)
    page = opened(seen, ui)
    seen.text("#errors", "10,000 errors in all")
    assert page.locator("#errors details").count() == 10
    page.locator("#errors summary").first.click()
    seen.text("#errors pre", f"ValueError: {HOSTILE} 9999")
    page.locator("#components button", has_text="onerror").click()
    seen.text("#component h3", HOSTILE)
    page.locator("#stories summary").click()
    page.locator("#stories button.mono").click()
    seen.text("#stories pre", HOSTILE)
    page.locator("#logs summary").click()
    seen.text("#logs pre", f"one {HOSTILE}")
    page.get_by_placeholder("text to search").fill("<IMG SRC")
    page.get_by_role("button", name="Search").click()
    seen.text("#logs", "1 line with “<IMG SRC”")
    assert page.locator("img, #main script").count() == 0


def _with_errors(statistics: Any, errors: int) -> Any:
    from dataclasses import replace

    components = dict(statistics.components)
    components[HOSTILE] = replace(components[HOSTILE], errors=errors)
    return replace(statistics, components=components)


def test_logs_are_followed_and_go_on_when_they_rotate(
    seen: Seen, ui: Ui, words: Busy, tmp_path: Path
) -> None:
    logs = tmp_path / "logs"
    logs.mkdir(mode=0o700)
    words.log_folder = str(logs)
    file = logs / "count-0.log"
    file.write_text("first\n")
    page = opened(seen, ui)
    page.locator("#logs summary").click()
    seen.text("#logs pre", "first")
    with file.open("a") as more:
        more.write("second\n")
    seen.text("#logs pre", "second")
    file.rename(logs / "count-0.log.1")
    file.write_text("third\n")
    seen.text("#logs pre", "third")
    assert page.locator("#logs pre").inner_text().count("second") == 1


def test_a_page_left_open_goes_on_with_the_next_run(seen: Seen, ui: Ui, folder: Path) -> None:
    first = Busy()
    server = serving(first)
    page = opened(seen, ui)
    server.close()
    seen.text("#connection", "The driver has not answered since")
    assert page.locator("#actions button:enabled").count() == 0
    assert "What is shown is from before" in page.inner_text("#connection")
    second = Busy()
    second.storm_id = "words-2-1795861999"
    again = serving(second)
    seen.text("#connection", "The topology was started again")
    seen.text("#about", "words-2-1795861999")
    assert page.locator("#actions button:enabled").count() == 3
    again.close()


class Refuses(BasicBolt):
    """Fails its first tuple."""

    failed = threading.Event()

    def execute(self, tup: Any, collector: Any) -> None:
        if not Refuses.failed.is_set():
            Refuses.failed.set()
            raise FailedException(HOSTILE)


def test_commits_and_state_of_an_exactly_once_topology(seen: Seen, ui: Ui, tmp_path: Path) -> None:
    builder = TopologyBuilder()
    builder.set_spout("lines", FixedTupleSpout([("a",), ("b",)], Fields("line")))
    builder.set_bolt("count", Count()).shuffle_grouping("lines")
    builder.set_bolt("refuses", Refuses()).shuffle_grouping("lines")
    conf = {"stormspark.exactly.once": True}
    plan = plan_topology(builder.create_topology("words"), conf)
    # The local engine has no state table, so the topology gets one here.
    write_state(tmp_path, {HOSTILE: HOSTILE * 10, **{f"x{number}": number for number in range(60)}}, tasks=1)
    place = property(lambda self: StatePlace(str(tmp_path), by_spark=False))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LocalTopology, "state_table", place)
        running = LocalTopology(plan, show=lambda name, record: None)
        page = opened(seen, ui)
        page.locator("#batches summary").click()
        seen.text("#commits", "The last commits")
        seen.text("#commits td", HOSTILE)
        assert page.locator("#commits table").last.locator("tbody tr").count() == 1
        committed = page.locator("#commits table").first.locator("tbody tr")
        assert 1 <= committed.count() <= 50
        assert committed.last.locator("td").nth(2).inner_text() == "2"
        page.locator("#state summary").click()
        seen.text("#state", str(tmp_path))
        assert page.locator("#state table").count() == 0
        page.get_by_role("button", name="read the table").click()
        seen.text("#state", "1 task, 61 keys")
        assert page.locator("#state tbody tr").count() == 50
        assert page.locator("img, #main script").count() == 0
        (tmp_path / "_delta_log").rename(tmp_path / "gone")
        page.get_by_role("button", name="read the table").click()
        seen.text("#state [role=alert]", "there is no state table at")
        assert page.evaluate(FAINT) == []
        running.stop()


def test_the_lag_of_a_spout_is_where_the_spout_is(seen: Seen, ui: Ui, words: Busy) -> None:
    page = opened(seen, ui)
    page.locator("#components button", has_text="lines").click()
    seen.text("#lag", "7 messages wait in 1 partition of Kafka")
    assert page.locator("#lag td").all_inner_texts() == ["topic", "0", "3", "10", "7"]
    page.locator("#components button", has_text="count").click()
    page.wait_for_selector("#lag h3", state="detached")


def test_a_click_when_the_topology_has_gone_is_no_error_of_the_page(seen: Seen, ui: Ui) -> None:
    server = serving(Busy())
    page = opened(seen, ui)
    server.close()
    page.locator("#tasks summary").click()
    page.locator("#components button", has_text="count").click()
    seen.text("#connection", "The driver has not answered since")


def test_only_the_link_opens_it(browser: Browser, ui: Ui, words: Busy) -> None:
    link = ui.link
    first, second = Seen(browser), Seen(browser)
    first.open(link)
    for address in (link, ui.address):
        second.page.goto("about:blank")
        second.page.goto(address)
        second.text("#connection", "This browser has no token")
    second.page.goto(f"{ui.address}t/words/")
    second.text("#connection", "The server wants a token")
    assert second.page.inner_text("#name") == "…"
    # Another tab of the browser that has it.
    other = first.context.new_page()
    other.goto(f"{ui.address}t/words/")
    other.locator("#verdict strong").wait_for()
    first.close()
    second.close()


def test_the_port_of_a_driver_asks_for_the_token_as_a_password(browser: Browser) -> None:
    server = serving(Busy({"stormspark.ui.port": 0}))
    entry = entry_of("words")
    assert entry.url is not None
    address = entry.url.removesuffix("api/v1")
    stranger = Seen(browser, http_credentials={"username": "me", "password": "wrong"})
    answer = stranger.page.goto(address)
    assert answer is not None
    assert answer.status == 401
    stranger.close()
    known = Seen(browser, http_credentials={"username": "me", "password": str(entry.token)})
    known.open(address)
    assert "words is in trouble" in known.page.inner_text("#verdict")
    assert known.page.locator("#all").is_hidden()
    known.page.get_by_role("button", name="Deactivate").click()
    known.page.locator("dialog button[type=submit]").click()
    known.text("#status", "INACTIVE")
    known.close()
    server.close()


@pytest.mark.parametrize("width", [320, 390])
@pytest.mark.parametrize("colours", ["light", "dark"])
def test_on_a_phone(browser: Browser, ui: Ui, words: Busy, width: int, colours: Any) -> None:
    one = Seen(browser, viewport={"width": width, "height": 800}, color_scheme=colours, has_touch=True)
    page = opened(one, ui)
    for name in ("queues", "batches", "workers", "tasks", "stories", "logs"):
        page.locator(f"#{name} summary").click()
    one.shown(2)
    # Wide tables and the graph scroll by themselves; the page does not.
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert background == {"light": "rgb(246, 247, 249)", "dark": "rgb(18, 22, 28)"}[colours]
    one.close()


def test_everything_has_a_name_and_enough_contrast(browser: Browser, ui: Ui, words: Busy) -> None:
    for colours in ("light", "dark"):
        one = Seen(browser, color_scheme=colours)
        page = opened(one, ui)
        for name in ("queues", "batches", "workers", "tasks", "logs"):
            page.locator(f"#{name} summary").click()
        one.shown(2)
        assert page.evaluate(NAMELESS) == []
        assert page.evaluate(FAINT) == []
        one.close()


def test_a_topology_that_has_ended(browser: Browser, words: Busy, tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    edges = [
        {"source": edge.source, "stream": edge.stream, "target": edge.target, "grouping": "shuffle"}
        for edge in words.plan.edges
    ]
    file.write_text(json.dumps({**words.statistics().as_json(), "subscriptions": edges}))
    served = Ui({"file-1-words": read_finished(file)})
    one = Seen(browser)
    page = one.page
    page.goto(served.link)
    page.locator("#list li", has_text="ENDED").get_by_role("link").click()
    page.locator("#verdict strong").wait_for()
    assert "words has ended" in page.inner_text("#verdict")
    assert page.locator("#graph .box").count() == 3
    assert page.locator("#actions button").count() == 0
    # What is not known of it is not shown.
    for hidden in ("time", "state", "stories", "tasks", "logs"):
        page.locator(f"#{hidden}").wait_for(state="hidden")
    one.close()
    served.close()


#: Buttons, fields and pictures that a screen reader could only call "button".
NAMELESS = """[...document.querySelectorAll('button, input, select, [role=button], [role=img], a')]
  .filter((one) => one.checkVisibility() && !(one.ariaLabel || one.textContent.trim() || one.labels?.length || one.placeholder))
  .map((one) => one.outerHTML)"""
#: Texts whose contrast to what is behind them is below 4.5 (WCAG AA).
FAINT = """(() => {
  const parts = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((c) => c / 255).map((c) => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (one) => { for (let up = one; up; up = up.parentElement) {
    const colour = parts(getComputedStyle(up).backgroundColor); if (colour.length < 4 || colour[3] > 0) return colour; }
    return [255, 255, 255]; };
  return [...document.querySelectorAll('body *:not(svg *)')].filter((one) => one.checkVisibility() && !one.disabled &&
    [...one.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim())).map((one) => {
    const [a, b] = [light(parts(getComputedStyle(one).color)), light(behind(one))];
    return [(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), one.outerHTML.slice(0, 150)];
  }).filter(([contrast]) => contrast < 4.5);
})()"""
