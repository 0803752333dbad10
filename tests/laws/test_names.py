"""A class name has one meaning."""

from __future__ import annotations

import ast
from collections import defaultdict
from importlib.machinery import PathFinder
from importlib.metadata import packages_distributions

from laws.sources import ROOT, modules

# The languages' own words: what is written, its type, and what it becomes have the same names.
LEVELS = ("specchk.lang.syntax", "specchk.lang.check.types", "specchk.ir")
# A frozen test runs without specchk, so it brings what a binding uses along under the names used there.
COPY = "specchk.conform.replay.frozen_run"


def test_no_two_classes_of_a_package_have_one_name() -> None:
    """A search for a class finds one, and its name identifies it."""
    homes = defaultdict[tuple[str, str], list[str]](list)
    for module in modules():
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef) and module.name != COPY:
                homes[module.name.split(".")[0], node.name].append(module.name)
    twice = {name: where for (_, name), where in homes.items() if len(where) > 1}
    wrong = {name: where for name, where in twice.items() if not all(one.startswith(LEVELS) for one in where)}
    assert wrong == {}


def test_no_folder_on_the_path_hides_an_installed_package() -> None:
    """Bindings and tests have conformance/ and tests/ on sys.path, where `kafka` is to be kafka-python."""
    folders = [str(ROOT / "conformance"), str(ROOT / "tests")]
    for name in sorted(packages_distributions()):
        spec = PathFinder.find_spec(name, folders)
        # A folder without `__init__.py` has no loader: an installed package is preferred to it.
        assert spec is None or spec.loader is None, f"{spec.origin} hides the installed package {name}"
