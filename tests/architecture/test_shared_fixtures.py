"""What all tests share, they share without getting into each other's way."""

import re
from collections import defaultdict
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent


def test_no_two_files_of_tests_make_the_same_kafka_topic():
    """One broker serves them all, in whatever order they run."""
    makers = defaultdict(set)
    for path in TESTS.rglob("*.py"):
        for topic in re.findall(r'create_topic\(\s*"([^"]+)"', path.read_text()):
            makers[topic].add(path.name)
    assert makers
    assert {topic: files for topic, files in makers.items() if len(files) > 1} == {}
