"""`import stormspark` is for every machine: without Java, Spark or Delta, and without waiting for them."""

import json
import subprocess
import sys
import textwrap

import pytest

BLOCKED = """
    import sys

    class Blocked:
        def find_spec(self, name, path=None, target=None):
            if name.split(".")[0] in {"pyspark", "py4j", "delta"}:
                raise ModuleNotFoundError(f"blocked: {name}", name=name)

    sys.meta_path.insert(0, Blocked())
"""


def run_without_spark(code: str) -> subprocess.CompletedProcess[str]:
    """Run code in a Python that has no Spark, on a machine that has no Java."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(BLOCKED) + textwrap.dedent(code)],
        env={"PATH": "", "PYTHONPATH": ":".join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_block_works():
    assert "blocked: pyspark" in run_without_spark("import pyspark").stderr


MODULES = [
    "stormspark",
    "stormspark.api",
    "stormspark.cli",
    "stormspark.local",
    "stormspark.plan",
    "stormspark.testing",
    "stormspark.ui",
    "stormspark.wire",
    "stormspark.worker",
]


@pytest.fixture(scope="module")
def errors() -> dict[str, str]:
    """What went wrong, for each module that can't be imported. One process imports them all."""
    done = run_without_spark(f"""
        import importlib, json, traceback

        errors = {{}}
        for module in {MODULES}:
            try:
                importlib.import_module(module)
            except ImportError:
                errors[module] = traceback.format_exc()
        print(json.dumps(errors))
    """)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


@pytest.mark.parametrize("module", MODULES)
def test_no_module_above_the_engine_needs_spark(module, errors):
    assert module not in errors, errors[module]


def test_the_command_line_helps_without_spark():
    done = run_without_spark("""
        from stormspark.cli import main
        main(["run", "--help"])
    """)
    assert done.returncode == 0, done.stderr
    assert "--until-idle" in done.stdout
