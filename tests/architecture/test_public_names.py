"""What the package offers is what it says it offers."""

import importlib
import pkgutil
from collections import Counter

import stormspark

MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(stormspark.__path__, "stormspark.")
    # The Spark engine has tests of its own, which need Java. A __main__ runs when it is imported.
    if not module.name.startswith("stormspark.spark") and not module.name.endswith("__main__")
)
#: STYLE: a module is one idea, and these name none.
NO_IDEA = {"common", "helper", "helpers", "manager", "misc", "util", "utils"}


def test_all_names_what_is_there_and_public():
    wrong = {}
    for name in ["stormspark", *MODULES]:
        module = importlib.import_module(name)
        offered = getattr(module, "__all__", [])
        absent = [one for one in offered if not hasattr(module, one)]
        private = [one for one in offered if one.startswith("_") and one != "__version__"]
        twice = [one for one, times in Counter(offered).items() if times > 1]
        if absent or private or twice:
            wrong[name] = {"absent": absent, "private": private, "twice": twice}
    assert wrong == {}


def test_the_package_offers_what_users_write_topologies_with():
    assert {"BasicBolt", "Bolt", "Fields", "Spout", "TopologyBuilder"} <= set(stormspark.__all__)


def test_every_module_says_what_it_is():
    assert [name for name in MODULES if not (importlib.import_module(name).__doc__ or "").strip()] == []


def test_no_module_is_a_drawer():
    assert [name for name in MODULES if name.split(".")[-1] in NO_IDEA] == []
