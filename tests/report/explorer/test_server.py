"""The explorer's server, called directly: its answers, and its refusals with messages."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specchk.cli.commands.explore import MAX_REQUEST_BYTES, WalkerPool, application
from specchk.compile.instantiate import instantiate
from specchk.explore.walk import Walker
from specchk.lang.frontend import check
from specchk.report.explorer.api import about

ROOT = Path(__file__).parents[3]
TOKEN = "secret"
APP = application(instantiate(check(str(ROOT / "spec/kafka/truncate_to_hw.spec"))), TOKEN)


def ask(
    path: str, body: bytes | None = None, host: str = "127.0.0.1:8000", **more: str
) -> tuple[int, dict[str, str], str]:
    """Status, headers and body of one request."""
    answer: dict[str, Any] = {}

    def start(status: str, headers: list[tuple[str, str]], *_: Any) -> None:
        answer.update(status=int(status.split()[0]), headers=dict(headers))

    errors = io.StringIO()
    environ = {
        "REQUEST_METHOD": "GET" if body is None else "POST", "PATH_INFO": path, "HTTP_HOST": host,
        "wsgi.input": io.BytesIO(body or b""), "CONTENT_LENGTH": str(len(body or b"")),
        "SERVER_NAME": "127.0.0.1", "SERVER_PORT": "8000", "wsgi.url_scheme": "http",
        "wsgi.errors": errors, **more,
    }  # fmt: skip
    text = b"".join(APP(environ, start)).decode()
    assert errors.getvalue() == "", "no traceback, not even in the terminal"
    assert "Traceback" not in text
    return answer["status"], answer["headers"], text


def api(name: str, asked: Any) -> tuple[int, Any]:
    status, _, text = ask(f"/{TOKEN}/api/{name}", json.dumps(asked).encode())
    return status, json.loads(text)


def test_the_page_has_the_initial_states_by_what_differs(tmp_path: Path):
    """One text for each path's first number: the variables that differ between them."""
    file = tmp_path / "three.spec"
    file.write_text(
        "spec three\nvar x : 0..3 in {0, 2}\nvar y : bool\nvar z : bool = true\ninit: y or x == 2\n"
    )
    walker = Walker(instantiate(check(str(file))))
    assert about(walker)["starts"] == ["x = 0, y = true", "x = 2, y = false", "x = 2, y = true"]
    assert [walker.at([number]).trace.initial for number in range(3)] == list(walker.initial)


@pytest.mark.parametrize("name", ["", "explorer.css", "explorer.js"])
def test_the_page_may_use_nothing_but_itself(name: str):
    """A policy on every answer: no other host, no frames, no inline code, no storage."""
    status, headers, _ = ask(f"/{TOKEN}/{name}")
    assert status == 200
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["Cache-Control"] == "no-store"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"


@pytest.mark.parametrize(
    "path", ["/", "/explorer.js", "/wrong/", "/wrong/api/about", f"/{TOKEN}/../x", f"/{TOKEN}/other"]
)
def test_without_the_token_there_is_nothing(path: str):
    """Every address begins with the token; no file but the page's own is served."""
    status, _, text = ask(path)
    assert status == 404
    assert TOKEN not in text


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8000", "127.0.0.1.evil.example", ""])
def test_another_name_for_this_machine_is_refused(host: str):
    """DNS rebinding makes a browser send another site's name: no page, and no state, for that."""
    for path, body in ((f"/{TOKEN}/", None), (f"/{TOKEN}/api/position", b"{}")):
        status, _, text = ask(path, body, host)
        assert status == 403
        assert "enabled" not in text


def test_a_request_is_bounded():
    """By its announced length, and by the length read."""
    long = json.dumps({"path": [0] * MAX_REQUEST_BYTES}).encode()
    assert ask(f"/{TOKEN}/api/position", long)[0] == 413


@pytest.mark.parametrize("length", ["", "-1", "many", "1e3", "²", "0x10", "9" * 30])
def test_a_length_that_is_no_number_of_bytes_is_refused(length: str) -> None:
    """In words, and before anything is read."""
    status, _, text = ask(f"/{TOKEN}/api/position", b"{}", CONTENT_LENGTH=length)
    assert status in (411, 413)
    assert "too long, or has no length" in json.loads(text)["error"]


def test_a_request_whose_rest_does_not_come_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """After the connection's time limit."""

    def read(*_: object) -> bytes:
        raise TimeoutError

    body = io.BytesIO(b"{}")
    monkeypatch.setattr("bottle.BaseRequest.body", property(lambda _: type("Slow", (), {"read": read})()))
    assert ask(f"/{TOKEN}/api/position", body.getvalue())[0] == 408


@pytest.mark.parametrize(("origin", "status"), [
    ("http://127.0.0.1:8000", 200), ("http://evil.example", 403), ("http://127.0.0.1:9999", 403),
    ("null", 403),
])  # fmt: skip
def test_a_request_of_another_page_is_refused(origin: str, status: int) -> None:
    """Although it knows the address: a browser says which page asks."""
    assert ask(f"/{TOKEN}/api/position", b"{}", HTTP_ORIGIN=origin)[0] == status


def test_a_request_that_takes_long_keeps_no_other_waiting() -> None:
    """Each has a walker of its own, and those that are done are used again."""
    walkers = WalkerPool(instantiate(check(str(ROOT / "spec/kafka/truncate_to_hw.spec"))))
    with walkers.walker() as first, walkers.walker() as second:
        assert first is not second
    with walkers.walker() as third:
        assert third in (first, second)


@given(
    name=st.sampled_from(["about", "position", "scenario", "itf"]),
    asked=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["path", "name"]), inner),
        max_leaves=5,
    ),
)
def test_whatever_is_asked_the_answer_is_json(name: str, asked: Any):
    """An answer, or a 4xx with a sentence; never a 500."""
    status, found = api(name, asked)
    assert status in (200, 400, 404)
    assert status == 200 or found["error"]


@given(st.binary(max_size=200))
def test_noise_is_refused_in_words(body: bytes):
    """Bytes that are not JSON are the client's mistake."""
    status, _, text = ask(f"/{TOKEN}/api/position", body)
    assert status in (200, 400, 404)
    assert json.loads(text)


def test_jumps_find_shortest_ways():
    """To a violation in as many steps as the model expects; to nothing with a sentence."""
    status, found = api("jump", {"name": "strong_isr"})
    assert (status, len(found["path"])) == (200, 10)
    _, position = api("position", {"path": found["path"]})
    assert position["failed"][0]["property"] == "strong_isr"
    status, found = api("jump", {"name": "no_such"})
    assert found["path"] is None
    assert "none found" in found["said"]


def test_a_path_is_followed_as_far_as_it_exists():
    """A choice that is not enabled is no behaviour."""
    status, found = api("position", {"path": [0, 0, 0]})
    assert (status, len(found["trace"])) == (200, 3)
    for path in ([], [1], [0, 99], [0, -1]):
        assert api("position", {"path": path})[0] == 404
    for path in ([float("inf")], [float("nan")], ["x"], 3):
        assert api("position", {"path": path})[0] == 400
