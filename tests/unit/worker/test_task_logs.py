"""A log file for each task, rotated; print does no harm (X53e, W8). In a process of its own: it takes stdout over."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = """
import logging, sys, threading
from pathlib import Path
from stormspark.worker.task_logs import TaskLogs

logs = TaskLogs(Path(sys.argv[1]), 3, "INFO", max_bytes=2000, backup_count=2).install()
logging.info("the worker speaks")
logs.enter("count[2]")
print("printed by", "count")
sys.stdout.write("half a ")
logging.getLogger("mine").info("logged by count")
logging.getLogger("mine").debug("too quiet")
sys.stdout.write("line\\n")
thread = threading.Thread(target=lambda: print("from another thread"))
thread.start(); thread.join()
logs.enter("split[0]")
sys.stderr.write("an error of split\\n")
for number in range(200):
    print("line", number)
logs.enter(None)
print("again the worker")
"""


def test_each_task_has_its_file_and_print_goes_there(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("", "")
    count = (tmp_path / "count-2.log").read_text()
    assert "INFO stdout: printed by count" in count and "half a line" in count
    assert "INFO mine: logged by count" in count and "too quiet" not in count
    worker = (tmp_path / "worker-3.log").read_text()
    assert "the worker speaks" in worker and "from another thread" in worker and "again the worker" in worker
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["count-2.log", "split-0.log", "split-0.log.1", "split-0.log.2", "worker-3.log"]
    assert "line 199" in (tmp_path / "split-0.log").read_text()
    assert all((tmp_path / name).stat().st_size <= 2000 for name in names)
