"""The language server: one process for the tests of a module."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # lsp_client, for the tests of this folder

from lsp_client import Client

# These import the server's modules; those of the protocol are skipped by their client.
collect_ignore = [] if find_spec("pygls") else ["test_edits.py", "test_names.py"]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    pytest.importorskip("pygls")
    client = Client(tmp_path_factory.mktemp("specs").resolve())
    yield client
    assert client.stop() == 0
