"""`specchk explore`: a local page to walk through a spec's states.

Served on the loopback address only, on a free port, below a secret token that is part of the
printed address; the page asks nothing of any other host.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Sequence
from importlib.resources import files
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, make_server

import bottle
import click

from specchk.cli.common import load_instance, model_options
from specchk.cli.output import echo
from specchk.core.budget import Budget
from specchk.core.instantiate import Instance
from specchk.core.search import Options, search
from specchk.core.verdict import Trace, Violated
from specchk.core.walk import NoSuchPath, Position, Walker
from specchk.report.explorer import api

JUMP_SECONDS = 60
_TYPES = {"html": "text/html; charset=utf-8", "css": "text/css", "js": "text/javascript"}
_POLICY = (
    "default-src 'none'; style-src 'self' 'unsafe-inline'; script-src 'self'; connect-src 'self'; "
    "img-src data: blob:"
)


@click.command("explore")
@model_options
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="The port; a free one by default.")
def command(
    file: str, model: str | None, overrides: Sequence[str], properties: Sequence[str], port: int
) -> None:
    """Serve a page to walk through the states of the spec FILE; Ctrl-C ends it."""
    instance = load_instance(file, model, overrides, properties, as_json=False)
    token = secrets.token_urlsafe(16)
    app = application(instance, token)
    try:
        server = make_server("127.0.0.1", port, app, handler_class=_Quiet)
    except OSError as error:
        raise click.ClickException(f"cannot listen on port {port}: {error.strerror}") from None
    echo(f"exploring {instance.program.spec}, model {instance.program.model}; Ctrl-C ends it")
    echo(f"http://127.0.0.1:{server.server_port}/{token}/")
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        echo("ended")
    finally:
        server.server_close()


class _Quiet(WSGIRequestHandler):
    """Logs nothing: the address has the token in it."""

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def application(instance: Instance, token: str) -> bottle.Bottle:
    """The web application; every address below `/token/`."""
    app = bottle.Bottle()
    walker = Walker(instance)
    assets = files("specchk.report.explorer").joinpath("assets")

    def asset(name: str = "explorer.html") -> str:
        kind = name.rsplit(".", 1)[-1]
        if name not in ("explorer.html", "explorer.css", "explorer.js"):
            bottle.abort(404)
        bottle.response.content_type = _TYPES[kind]
        bottle.response.set_header("Content-Security-Policy", _POLICY)
        bottle.response.set_header("Referrer-Policy", "no-referrer")
        return assets.joinpath(name).read_text(encoding="utf-8")

    app.route(f"/{token}/", callback=asset)
    app.route(f"/{token}/<name>", callback=asset)
    for name, answer in _answers(walker).items():
        app.route(f"/{token}/api/{name}", method="POST", callback=_json(answer))
    return app


def _answers(walker: Walker) -> dict[str, Callable[[dict[str, Any]], Any]]:
    def at(asked: dict[str, Any]) -> Position:
        return walker.at([int(choice) for choice in asked.get("path", [0])])

    return {
        "about": lambda _: api.about(walker),
        "position": lambda asked: api.position(walker, at(asked)),
        "picture": lambda asked: {"svg": api.drawing(walker, at(asked))},
        "scenario": lambda asked: {"text": api.scenario(walker, at(asked).trace)},
        "itf": lambda asked: api.itf(walker, at(asked).trace),
        "jump": lambda asked: _jump(walker, str(asked.get("name"))),
    }


def _json(answer: Callable[[dict[str, Any]], Any]) -> Callable[[], str]:
    """A handler that answers a JSON object with one; what was asked wrongly is status 400 or 404."""

    def handle() -> str:
        bottle.response.content_type = "application/json"
        try:
            asked = json.loads(bottle.request.body.read() or b"{}")
            return json.dumps(answer(asked if isinstance(asked, dict) else {}))
        except NoSuchPath:
            bottle.response.status = 404
            return json.dumps({"error": "this path is not one of the spec's behaviours"})
        except (ValueError, TypeError) as error:
            bottle.response.status = 400
            return json.dumps({"error": str(error)})

    return handle


def _jump(walker: Walker, name: str) -> dict[str, Any]:
    """The path to a witness, or to a shortest violation of a property."""
    budget = Budget(max_seconds=JUMP_SECONDS)
    outcome = search(walker.program, Options(budget, symmetry=False))
    traces: dict[str, Trace] = dict(outcome.witnesses)
    if isinstance(outcome.verdict, Violated):
        traces.update({v.name: v.trace for v in outcome.verdict.violations if v.trace is not None})
    if name not in traces:
        raise ValueError(f"no state found for {name} within {JUMP_SECONDS} s")
    path = walker.path_to(traces[name])
    return {"path": list(path), "said": f"{name}: {len(path) - 1} steps"}
