"""The files of an implementation, and mistakes that are planted in it."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import pytest
from bank import Bank

from laws.sources import ROOT
from specchk.conform.contract.known_bad import BadCode, NoSuchText, planted
from specchk.conform.contract.load import load_binding
from specchk.conform.work.sources import files_of, fingerprint, shown


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A binding that imports a package, whose parts import each other."""
    files = {
        "gate_binding.py": "import json\nfrom shop import till\n"
        "from specchk.conform.contract.binding import Binding\n"
        "class Shop(Binding):\n    pass\n",
        "shop/__init__.py": "",
        "shop/till.py": "from . import coins\nfrom .deep.drawer import Drawer\n",
        "shop/coins.py": "import re\n",
        "shop/stray.py": "",
        "shop/deep/__init__.py": "from ..coins import re\n",
        "shop/deep/drawer.py": "class Drawer:\n    pass\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path / "gate_binding.py"
    for name in [name for name in sys.modules if name.split(".")[0] == "shop"]:
        del sys.modules[name]


def names(binding: Path, *patterns: str) -> list[str]:
    return [shown(path, binding.parent) for path in files_of(binding, patterns)]


def test_what_is_imported_is_followed_through_packages(package: Path):
    """Relative imports and the packages around modules too; not the library, not unimported files."""
    load_binding(package)
    assert names(package) == ["gate_binding.py", "shop/__init__.py", "shop/coins.py", "shop/deep/__init__.py",
                              "shop/deep/drawer.py", "shop/till.py"]  # fmt: skip


BLOCKS = (
    "if True:\n    pass\nelse:\n    {}",
    "try:\n    {}\nfinally:\n    pass",
    "try:\n    pass\nexcept ValueError:\n    {}",
    "try:\n    pass\nexcept* ValueError:\n    {}",
    "try:\n    pass\nexcept ValueError:\n    pass\nelse:\n    {}",
    "try:\n    pass\nfinally:\n    {}",
    "for _ in ():\n    {}",
    "while False:\n    pass\nelse:\n    {}",
    "with open(__file__):\n    {}",
    "match 1:\n    case 2:\n        pass\n    case _:\n        {}",
    "class Inner:\n    def method(self):\n        if self:\n            {}",
    "async def run():\n    async for _ in run():\n        {}",
)


@pytest.mark.parametrize("block", BLOCKS)
def test_an_import_counts_in_every_block(package: Path, block: str):
    """Whether it runs or not, if the module was loaded."""
    load_binding(package)
    import_module("shop.stray")
    package.write_text(block.format("import shop.stray") + "\n")
    assert names(package) == ["gate_binding.py", "shop/__init__.py", "shop/stray.py"]


def test_patterns_name_the_files_instead(package: Path):
    """Whether they are imported or not."""
    assert names(package, "shop/*.py") == ["gate_binding.py", "shop/__init__.py", "shop/coins.py",
                                           "shop/stray.py", "shop/till.py"]  # fmt: skip


def test_a_fingerprint_is_of_contents_and_places(package: Path):
    """Another text or another name changes it; line ends, which a checkout may change, do not."""
    files = files_of(package, ("shop/*.py",))
    before = fingerprint(files, package.parent)
    till = package.parent / "shop" / "till.py"
    till.write_bytes(till.read_bytes().replace(b"\n", b"\r\n"))
    assert fingerprint(files, package.parent) == before
    till.write_text("x = 1\n")
    assert fingerprint(files, package.parent) != before
    assert fingerprint(files, package.parent.parent) != fingerprint(files, package.parent)


def test_a_file_is_shown_from_the_binding(tmp_path: Path):
    """With `/` and `..`, whatever the system."""
    assert shown(tmp_path / "a" / "b.py", tmp_path / "c" / "d") == "../../a/b.py"


def test_the_files_of_replog_are_its_core_and_its_binding():
    """The lock of conformance/ covers the code that its binding runs: no network, no command line."""
    binding = ROOT / "conformance" / "binding.py"
    load_binding(binding)
    found = names(binding)
    assert found[0] == "binding.py"
    assert {"replog_state.py", "../impl/replog/core/broker/leader.py"} <= set(found)
    assert not [name for name in found if "/net/" in name or "specchk" in name]


def twice(amount: int) -> int:
    """A function to plant a mistake in."""
    return 2 * amount


def test_a_mistake_is_there_inside_and_gone_after():
    """Every caller of the function runs it, and an exception removes it too."""
    held = twice
    wrong = BadCode("thrice", twice, "2 * amount", "3 * amount", "small")
    with planted(wrong):
        assert held(2) == 6
    assert held(2) == 4
    with pytest.raises(ZeroDivisionError), planted(wrong):
        raise ZeroDivisionError
    assert held(2) == 4


@pytest.mark.parametrize(("function", "was"), [(twice, "4 * amount"), (twice, "amount"), (Bank, "coin")])
def test_a_text_that_does_not_stand_once_is_told(function, was: str):
    """A control that plants nothing would make a gate look blind; also one without a function."""
    with pytest.raises(NoSuchText), planted(BadCode("nothing", function, was, "0", "small")):
        pass
