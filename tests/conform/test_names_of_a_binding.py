"""What a binding is made of has one short address, which costs nothing until it is used."""

from __future__ import annotations

import subprocess
import sys

import pytest

import specchk
from specchk.conform import contract


def test_the_names_of_a_binding_are_names_of_specchk():
    assert specchk.__all__ == contract.__all__
    assert all(getattr(specchk, name) is getattr(contract, name) for name in contract.__all__)


def test_another_name_is_an_error():
    with pytest.raises(ImportError, match="cannot import name 'Bindings'"):
        from specchk import Bindings  # type: ignore[attr-defined]  # noqa: F401
    assert not hasattr(specchk, "bindings")


def test_the_import_of_specchk_imports_nothing_else():
    command = "import sys, specchk; print([name for name in sys.modules if name.startswith('specchk.')])"
    done = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
