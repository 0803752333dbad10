"""Spark's archives on the path of a Python worker, where they cost 30 MB.

    pyspark.zip, py4j-0.10.9.9-src.zip   the modules, compiled at each start: archives have sources only
    spark-core_2.13-4.0.1.jar            6,000 classes of Java, and no module

Python keeps a list of all files of each, and up to 3.12 a list for each package that it imported from there,
once a task brings files.  Where the package is installed its zip files are redundant, so the daemon
(`daemon`) does without them; other daemons have imported from them already, and their workers give back what
they can.
"""

from __future__ import annotations

import ctypes
import sys
import zipimport
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any


def without_archives(path: Sequence[str]) -> list[str]:
    """A search path without Spark's archives, unless modules would be missing."""
    rest = without_java(path)
    sites = [site for site in map(Path, rest) if (site / "pyspark").is_dir() and (site / "py4j").is_dir()]
    # Of the very package that is installed: another Spark has other modules.
    packages = {site / "pyspark" for site in sites}
    return [entry for entry in rest if not (entry.endswith(".zip") and packages & {*Path(entry).parents})]


def without_java(path: Sequence[str]) -> list[str]:
    """A search path without Spark's own classes."""
    return [entry for entry in path if not _is_java(entry)]


def _is_java(entry: str) -> bool:
    name = Path(entry).name
    return name.startswith("spark-core_") and name.endswith(".jar")


def give_back() -> None:
    """In a worker that imported from archives, share one list of files for each, and return free pages."""
    for place in list(sys.path_importer_cache):
        if _is_java(place) or any(map(_is_java, map(str, Path(place).parents))):
            del sys.path_importer_cache[place]
    sys.path[:] = without_java(sys.path)
    # Not public: without these names, as in later versions of Python, there is one list already.
    lists: dict[str, Any] = getattr(zipimport, "_zip_directory_cache", {})
    for archive in [archive for archive in lists if _is_java(archive)]:
        del lists[archive]
    loaders = [getattr(module, "__loader__", None) for module in list(sys.modules.values())]
    for loader in (*sys.path_importer_cache.values(), *loaders):
        if isinstance(loader, zipimport.zipimporter) and hasattr(loader, "_files"):
            loader._files = lists.get(loader.archive, loader._files)
    with suppress(AttributeError, OSError):  # only glibc has it
        ctypes.CDLL(None).malloc_trim(0)
