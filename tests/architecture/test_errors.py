"""The tree drawn in `stormspark.errors` is the tree that is there."""

import inspect
import re

from stormspark import errors


def test_the_drawing_is_the_tree():
    drawn = re.findall(r"[─]+ (\w+)", errors.__doc__ or "")
    there = [
        name
        for name, value in vars(errors).items()
        if inspect.isclass(value) and issubclass(value, errors.StormsparkError) and name != "StormsparkError"
    ]
    assert sorted(drawn) == sorted(there)


def test_every_error_is_offered():
    assert sorted(errors.__all__) == errors.__all__
    for name in errors.__all__:
        assert issubclass(getattr(errors, name), errors.StormsparkError)
