"""`specchk explore`: a local page for stepping through the states of a spec.

Served on the loopback address only, on a free port, below a secret token that is part of the
printed address; the page sends no request to any other host, and no other name than the loopback's
reaches it (which prevents DNS rebinding).  Requests are bounded; an error is reported as a sentence, never as
a traceback.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.resources import files
from socketserver import ThreadingMixIn
from types import MappingProxyType
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import bottle
import click

from specchk.cli.common import ModelChoice, refusals
from specchk.cli.groups import takes
from specchk.cli.output import echo
from specchk.compile.instantiate import Instance
from specchk.explore.walk import NoStart, NoSuchPath, Position, Walker, started
from specchk.report.explorer import api
from specchk.report.itf import trace_itf

Answer = Callable[[Walker, dict[str, Any]], Any]

JUMP_SECONDS = 60
MAX_REQUEST_BYTES = 1 << 16
HOST = "127.0.0.1"
_TYPES = {"html": "text/html; charset=utf-8", "css": "text/css", "js": "text/javascript"}
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


@click.command("explore")
@takes(choice=ModelChoice)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="N",
    default=0,
    help="Port of the page; a free one by default.",
)
def command(choice: ModelChoice, port: int) -> None:
    """Serve a page for stepping through the states of the spec FILE; stop it with Ctrl-C."""
    instance = choice.instance(as_json=False)
    token = secrets.token_urlsafe(16)
    try:
        with refusals(NoStart):
            app = application(instance, token)
        server = make_server(HOST, port, app, _Server, _Quiet)
    except OSError as error:
        raise click.ClickException(f"cannot listen on port {port}: {error.strerror}") from None
    echo(f"exploring {instance.program.spec}, model {instance.program.model}; Ctrl-C ends it")
    echo(f"http://{HOST}:{server.server_port}/{token}/")
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        echo("ended")
    finally:
        server.server_close()


class _Server(ThreadingMixIn, WSGIServer):
    """A server with a thread per connection, since browsers open connections that they never use."""

    daemon_threads = True


class _Quiet(WSGIRequestHandler):
    """A handler without a log, since the address contains the token."""

    # A connection that a browser opens and never uses ends, and its thread with it.
    timeout = 30

    def log_message(self, *_: object) -> None:
        """Log nothing."""


def application(instance: Instance, token: str) -> bottle.Bottle:
    """The web application; all addresses are below `/token/`."""
    app = bottle.Bottle()
    walkers = WalkerPool(instance)
    assets = files("specchk.report.explorer").joinpath("assets")

    def asset(name: str = "explorer.html") -> str:
        if name not in ("explorer.html", "explorer.css", "explorer.js"):
            bottle.response.status = 404
            return "page not found"
        bottle.response.content_type = _TYPES[name.rsplit(".", 1)[-1]]
        return assets.joinpath(name).read_text(encoding="utf-8")

    app.route(f"/{token}/", callback=asset)
    app.route(f"/{token}/<name>", callback=asset)
    for name, answer in ANSWERS.items():
        app.route(f"/{token}/api/{name}", method="POST", callback=_json(answer, walkers))
    app.install(_guarded)
    app.default_error_handler = _error
    return app


def _guarded(callback: Callable[..., str]) -> Callable[..., str]:
    """Reject requests that a browser would send for another site; set the page's security policy."""

    def handle(*args: Any, **named: Any) -> str:
        for name, value in _HEADERS.items():
            bottle.response.set_header(name, value)
        host = bottle.request.get_header("Host", "").rsplit(":", 1)[0]
        if host not in (HOST, "localhost"):
            bottle.response.status = 403
            return "this page is served to this machine only"
        # A browser names the page that sends a request; other programs name none.
        origin = bottle.request.get_header("Origin")
        if origin is not None and origin != f"http://{bottle.request.get_header('Host')}":
            bottle.response.status = 403
            return "this request is from another page"
        return callback(*args, **named)

    return handle


def _error(error: bottle.HTTPError) -> str:
    """The body of an error response without a handler: only the status."""
    bottle.response.content_type = "text/plain"
    return str(error.status_line)


def _at(walker: Walker, request: dict[str, Any]) -> Position:
    return walker.at([int(choice) for choice in request.get("path", [0])])


ANSWERS: Mapping[str, Answer] = MappingProxyType({
    "about": lambda walker, _: api.about(walker),
    "position": lambda walker, request: api.position(walker, _at(walker, request)),
    "picture": lambda walker, request: api.drawing(walker, _at(walker, request)),
    "scenario": lambda walker, request: {"text": api.scenario(walker, _at(walker, request).trace)},
    "itf": lambda walker, request: trace_itf(walker.program, _at(walker, request).trace, None),
    "jump": lambda walker, request: _jump(walker, str(request.get("name"))),
})  # fmt: skip


class WalkerPool:
    """As many walkers as there are requests at a time, since a stepper counts and caches while it steps.

    So a long path, or a jump, does not keep other requests waiting.
    """

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._idle = [started(instance)]

    @contextmanager
    def walker(self) -> Iterator[Walker]:
        """A context with a walker that no other request uses."""
        try:
            walker = self._idle.pop()
        except IndexError:
            walker = started(self._instance)
        try:
            yield walker
        finally:
            self._idle.append(walker)


def _length(text: str | None) -> int:
    """The length of a request in bytes; -1 without one."""
    return int(text) if text and text.isascii() and text.isdigit() else -1


def _json(answer: Answer, walkers: WalkerPool) -> Callable[[], str]:
    """A handler that answers one JSON object with another; an invalid request gets a 4xx and a sentence."""

    def refused(status: int, why: str) -> str:
        bottle.response.status = status
        return json.dumps({"error": why})

    def handle() -> str:
        bottle.response.content_type = "application/json"
        # Before anything is read, and not by bottle, which expects a number.
        length = _length(bottle.request.environ.get("CONTENT_LENGTH"))
        if not 0 <= length <= MAX_REQUEST_BYTES:
            return refused(413 if length > 0 else 411, "the request is too long, or has no length")
        try:
            request = json.loads(bottle.request.body.read(MAX_REQUEST_BYTES) or b"{}")
            with walkers.walker() as walker:
                return json.dumps(answer(walker, request if isinstance(request, dict) else {}))
        except OSError:  # the rest of a request that does not come
            return refused(408, "the request did not arrive")
        except NoSuchPath:
            return refused(404, "this path is not a behaviour of the spec")
        except (ValueError, TypeError, OverflowError) as error:
            return refused(400, f"this is not a request from the explorer's page: {error}")
        except RecursionError:
            return refused(400, "this is not a request from the explorer's page")

    return handle


def _jump(walker: Walker, name: str) -> dict[str, Any]:
    """The path to a witness, or to a shortest violation of a property."""
    trace = walker.find(name, JUMP_SECONDS)
    if trace is None:
        return {"path": None, "said": f"{name}: none found (searched for at most {JUMP_SECONDS} s)"}
    path = walker.path_to(trace)
    return {"path": list(path), "said": f"{name}: {len(path) - 1} steps"}
