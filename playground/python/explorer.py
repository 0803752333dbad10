"""The explorer in the playground: its server's application, called by the worker.

Apart from `playground`, since its libraries take longer to load than the rest of specchk.
"""

from __future__ import annotations

from io import BytesIO
from typing import Any
from wsgiref.util import setup_testing_defaults

from specchk.cli.commands.explore import HOST, application
from specchk.compile.instantiate import instantiate
from specchk.explore.walk import NoStart
from specchk.lang import frontend
from specchk.lang.text.diagnostics import SpecError


class Explorer:
    """The server of the explorer's page, for one model (without a name the first), without a network."""

    def __init__(self, path: str, model: str) -> None:
        self.error = ""  # why there is nothing to explore
        try:
            self._app = application(instantiate(frontend.check(path), model or None), "playground")
        except (SpecError, NoStart) as error:
            self.error = str(error)

    def ask(self, name: str, body: str) -> list[Any]:
        """The status of a request's answer, and its text."""
        data, answered = body.encode(), []
        environ = {
            "REQUEST_METHOD": "POST", "PATH_INFO": f"/playground/api/{name}", "HTTP_HOST": HOST,
            "CONTENT_LENGTH": str(len(data)), "wsgi.input": BytesIO(data),
        }  # fmt: skip
        setup_testing_defaults(environ)
        parts = self._app(environ, lambda status, _headers, _error=None: answered.append(status))
        return [int(answered[0].split()[0]), b"".join(parts).decode()]
