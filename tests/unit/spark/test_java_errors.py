"""The cause of an error of the JVM is found below the stack of its calls."""

from __future__ import annotations

from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError

from stormspark.spark.java_errors import cause_in, in_full, in_one_line, in_words, without_frames

STACK = """An error occurred while calling o58.load.
: org.apache.spark.SparkException: job aborted
\tat org.apache.spark.A.b(A.scala:1)
Caused by: java.io.FileNotFoundException: /data/x (No such file or directory)
\tat java.base/java.io.C.d(C.java:2)
\t... 12 more
"""


class _JavaError(Py4JJavaError):  # type: ignore[misc]
    """An error of the JVM, whose text the JVM does not give any more if ``text`` is an error."""

    def __init__(self, text: Any) -> None:
        self._text = text

    def __str__(self) -> str:
        if isinstance(self._text, BaseException):
            raise self._text
        return str(self._text)


def test_the_cause_at_the_bottom_is_named() -> None:
    assert in_words(_JavaError(STACK)) == "java.io.FileNotFoundException: /data/x (No such file or directory)"
    assert (
        in_words(_JavaError(STACK.partition("Caused")[0])) == "org.apache.spark.SparkException: job aborted"
    )
    assert in_words(_JavaError("nothing known")) == "_JavaError"
    assert cause_in("") == ""


def test_other_errors_are_their_first_line() -> None:
    assert in_words(Py4JError("An error\nat length")) == "Py4JError: An error"
    assert in_words(KeyError()) == "KeyError"


def test_a_jvm_that_is_gone_gives_no_text() -> None:
    assert (
        in_words(_JavaError(ConnectionError("gone"))) == "_JavaError (Spark's JVM does not answer any more)"
    )


IN_PYTHON = """An error occurred while calling o90.collectToPython.
: org.apache.spark.SparkException: Job aborted due to stage failure
\tat org.apache.spark.A.b(A.scala:1)
Caused by: org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "worker.py", line 7, in main
    process()

  File "words.py", line 3, in run
    return 1 / 0
           ~~^~~
ZeroDivisionError: division by zero

\tat org.apache.spark.api.python.BasePythonRunner.c(PythonRunner.scala:5)
"""


def test_an_error_of_python_code_below_java_is_that_error() -> None:
    """The line with the exception of Java has only the beginning of the traceback."""
    assert in_words(_JavaError(IN_PYTHON)) == "ZeroDivisionError: division by zero"


def test_a_text_in_full_has_no_frames_of_java_and_is_cut() -> None:
    """Other lines stay, also those of Spark's own advice."""
    assert in_full(_JavaError(STACK)) == "java.io.FileNotFoundException: /data/x (No such file or directory)"
    assert in_full(ValueError("no source\nname another one")) == "ValueError: no source\nname another one"
    assert without_frames(STACK).count("\tat ") == 0
    assert without_frames("x" * 5000).endswith("x ...")


IN_THE_DRIVER = """An exception was raised by the Python Proxy. Return Message: Traceback (most recent call last):
  File "clientserver.py", line 644, in _call_proxy
    return_value = getattr(self.pool[obj_id], method)(*params)
                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  File "/home/me/query_run.py", line 192, in batch
    observe(reports)
AttributeError: 'Report' object has no attribute 'calls'
=== Streaming Query ===
Identifier: words [id = 1, runId = 2]

Logical Plan:
~WriteToMicroBatchDataSourceV1 ForeachBatchSink
"""


def test_an_error_in_the_driver_is_that_error_and_its_line_and_not_the_plan_of_the_query() -> None:
    told = "AttributeError: 'Report' object has no attribute 'calls' (at /home/me/query_run.py:192, in the driver)"
    assert without_frames(IN_THE_DRIVER) == told
    assert without_frames(IN_THE_DRIVER.partition("Trace")[0]).endswith("Return Message:")


def test_a_line_about_a_failure_has_the_error_and_not_its_traceback() -> None:
    assert in_one_line(f"batch 7 is run again: {IN_PYTHON}").endswith(
        "ToPython. ZeroDivisionError: division by zero"
    )
    assert in_one_line(STACK) == "An error occurred while calling o58.load."
    assert in_one_line("batch 7 is run again: worker 0 is gone") == "batch 7 is run again: worker 0 is gone"
    raised = "worker 0 was lost: prepare raised KeyError: 'a' (words.py:3)"
    assert in_one_line(f"{raised}\nTraceback (most recent call last):\n  File ...\nKeyError: 'a'") == raised
    assert in_one_line("") == ""
