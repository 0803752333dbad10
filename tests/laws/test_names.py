"""A name on the path is that of one thing."""

from __future__ import annotations

from importlib.machinery import PathFinder
from importlib.metadata import packages_distributions

from laws.sources import ROOT


def test_no_folder_on_the_path_hides_an_installed_package() -> None:
    """Bindings and tests have conformance/ and tests/ on sys.path, where `kafka` is to be kafka-python."""
    folders = [str(ROOT / "conformance"), str(ROOT / "tests")]
    for name in sorted(packages_distributions()):
        spec = PathFinder.find_spec(name, folders)
        # A folder without `__init__.py` has no loader: an installed package is preferred to it.
        assert spec is None or spec.loader is None, f"{spec.origin} hides the installed package {name}"
