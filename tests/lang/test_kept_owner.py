"""The cache is this user's alone: what another user may have written there is not run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from specchk import kept

ROOT = Path(__file__).resolve().parents[2]
RUN = [
    sys.executable,
    "-m",
    "specchk",
    "run",
    str(ROOT / "spec" / "two_round_fetch.spec"),
    "--engine",
    "native",
]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache, with one kept file."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    kept.write(kept.place("kernels", "one"), b"code")
    assert kept.read(kept.place("kernels", "one")) == b"code"
    return tmp_path / "specchk"


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_the_folders_are_the_user_s_alone_under_any_umask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not only the folder that has the files, but the one that has the folders."""
    before = os.umask(0)
    try:
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        kept.write(kept.place("kernels", "one"), b"code")
    finally:
        os.umask(before)
    assert mode(tmp_path / "specchk") == mode(tmp_path / "specchk" / "kernels") == 0o700


def test_a_folder_of_an_older_version_is_closed(cache: Path) -> None:
    """It was made with the modes of the umask; its files are checked one by one."""
    cache.chmod(0o777)
    assert kept.refusal() is None
    assert mode(cache) == 0o700
    assert kept.read(kept.place("kernels", "one")) == b"code"


def test_the_cache_of_another_user_is_refused_in_words(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is read from it, and nothing written."""
    path = kept.place("kernels", "one")
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert kept.refusal() == (
        f"the cache {cache} is not used because it belongs to another user: "
        "set XDG_CACHE_HOME to a directory of your own"
    )
    assert kept.place("kernels", "one") is None
    assert kept.read(path) is None  # nor a single file, whoever has the folder


def test_a_folder_that_stays_open_is_refused(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a file system without modes."""
    cache.chmod(0o777)
    monkeypatch.setattr(Path, "chmod", lambda *_: None)
    assert "other users can write to it" in (kept.refusal() or "")
    assert kept.place("kernels", "one") is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
def test_a_run_goes_on_without_the_cache_of_another_user(cache: Path) -> None:
    """Its verdict is the same, its code is compiled here, and the reason is on standard error."""
    os.chown(cache, 12345, 12345)
    before = sorted(cache.rglob("*"))
    end = subprocess.run(RUN, capture_output=True, text=True, check=True)
    assert end.stdout.startswith("holds within MaxOffset=3")
    assert f"warning: the cache {cache} is not used because it belongs to another user" in end.stderr
    assert sorted(cache.rglob("*")) == before
