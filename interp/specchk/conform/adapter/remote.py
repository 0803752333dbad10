"""An implementation behind a pipe as a system of a binding: requests, snapshots, and restarts.

A saved system is a snapshot given by the implementation, or, if it gives none, the requests
since its start, which are sent again to a new start (`reset`, otherwise a new process).  `memory`, the
state of the environment, is saved with it.

    rewind to a saved state | the step's request | observe      one write, one wait

Requests whose answer decides nothing yet wait for the next one whose answer does, and all are written
together; each `do` is followed by an observation of the state, since a replay always needs it.

Invariants: requests are answered in order, each by the answer with its id; the effects of a step are undone
by the next rewind; after a failure the next request goes to a new process.
Not here: the meaning of actions and states (`process`).
"""

from __future__ import annotations

import copy
import weakref
from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from specchk.conform.adapter import wire
from specchk.conform.adapter.link import Launch, Link
from specchk.conform.adapter.wire import BrokenProtocol, WireAnswer, WireRequest
from specchk.conform.contract.binding import Accepted, Answer, BindingError, Impossible, Mistake, Refused
from specchk.conform.contract.failures import DIED, GARBLED, UNREPEATABLE, ImplementationFailure
from specchk.processes import own_needs

QUIT_S = 1.0  # for an orderly end
_OBSERVE = WireRequest("observe")


class Terms(Struct, frozen=True):
    """The limits that a binding sets for its process, and the contents of the first request."""

    launch: Launch
    hello: Mapping[str, Any]
    timeout_s: float
    start_timeout_s: float
    is_quiet: bool


class Took(Struct, frozen=True):
    """The answer to a `do`, by its member."""

    request: WireRequest
    member: str


class KeptRemote(Struct, frozen=True):
    """A saved system: the implementation's snapshot, or None, and all requests since the start."""

    snapshot: tuple[Any] | None
    took: tuple[Took, ...]
    memory: Mapping[str, Any]


class _Live(Struct):
    """A process that has answered the first request, and the number of its next request."""

    link: Link
    hello: wire.Hello
    number: int


class RemoteSystem(Struct, weakref=True):
    """The running system of a binding.  `memory` is the environment's; `result` is from the last `do`."""

    terms: Terms
    memory: dict[str, Any] = field(default_factory=dict)
    result: Any = None
    _live: _Live | None = None
    _waiting: list[tuple[WireRequest, str]] = field(default_factory=list)  # each with the expected member
    _took: tuple[Took, ...] = ()
    _seen: tuple[Any] | None = None  # the observation of the state that it is in
    _kept: KeptRemote | None = None  # the saved state it is at, if nothing was done since
    _end: weakref.finalize[..., Any] | None = None

    def start(self) -> None:
        """Set the system to the initial state."""
        live = self._running()
        # A new process is in its initial state: only one that was used is reset, or replaced.
        if live is not None and live.number > 1 and "reset" not in live.hello.can:
            self.end()
        live = self._running_or_new()
        self._waiting = [(WireRequest("reset"), "ok")] if live.number > 1 else []
        self._took, self._seen, self._kept = (), None, None
        self.memory, self.result = {}, None

    def do(self, name: str, args: Mapping[str, Any] | None = None) -> Answer:
        """Request a step: accepted with a `result`, refused, or impossible; raises the process's failures."""
        request = WireRequest("do", name, dict(args or {}))
        self._seen, self._kept, self.result = None, None, None
        did, seen = self._answers(request, _OBSERVE)
        self._took = (*self._took, Took(request, did.member))
        self._seen = (seen.value,)
        match did.member:
            case "accepted":
                self.result = did.value
                return Accepted()
            case "refused":
                return Refused(str(did.value))
            case _:
                return Impossible(str(did.value))

    def observe(self) -> Any:
        """Its state, as reported by the implementation."""
        if self._seen is None:
            (seen,) = self._answers(_OBSERVE)
            self._seen = (seen.value,)
        return copy.deepcopy(self._seen[0])

    def ask(self, name: str, args: Mapping[str, Any] | None = None) -> Any:
        """The answer to a query, which changes nothing."""
        if "ask" not in self._present().hello.can:
            hint = "list `ask` in the answer to `hello`, or observe the value"
            raise BindingError(
                (Mistake(f"the implementation does not offer `ask`, which `{name}` needs", hint),)
            )
        (answer,) = self._answers(WireRequest("ask", name, dict(args or {})))
        return answer.value

    def keep(self) -> KeptRemote:
        """Save the state."""
        memory = copy.deepcopy(self.memory)
        if "snapshot" not in self._present().hello.can:
            self._kept = KeptRemote(None, self._took, memory)
            return self._kept
        (answer,) = self._answers(WireRequest("snapshot"))
        return KeptRemote((answer.value,), (), memory)

    def back(self, kept: KeptRemote) -> None:
        """Restore a saved state; the requests for it are sent with the next one."""
        if kept.snapshot is not None:
            self._running_or_new()
            self._waiting[:] = [(WireRequest("restore", kept.snapshot[0]), "ok")]
            self._seen = None
        elif self._kept is not kept or self._running() is None:
            self.start()
            self._waiting += [(step.request, step.member) for step in kept.took]
            self._took = kept.took
            self._kept = kept
        self.memory, self.result = copy.deepcopy(dict(kept.memory)), None

    def _answers(self, *requests: WireRequest) -> list[WireAnswer]:
        """The responses to some requests, after the pending ones; raises any failure."""
        live = self._present()
        waiting, self._waiting = self._waiting, []
        everything = [*waiting, *((request, "") for request in requests)]
        first, live.number = live.number, live.number + len(everything)
        lines = (one.line(number) for number, (one, _) in enumerate(everything, first))
        live.link.send(b"".join(lines))
        answers = []
        try:
            for number, (request, expected) in enumerate(everything, first):
                answers.append(self._answer(live, number, request, expected))
        except ImplementationFailure:
            self._forget()
            raise
        return answers[len(waiting) :]

    def _answer(self, live: _Live, number: int, request: WireRequest, expected: str) -> WireAnswer:
        again = ", repeated from the start" if request.kind == "do" and expected else ""
        during = f"answering `{request}`{again}"
        line = live.link.receive(self.terms.timeout_s, during)
        try:
            answer = wire.answer_of(line, number, request)
        except BrokenProtocol as error:
            raise live.link.failed(GARBLED, str(error), during) from None
        if self.terms.is_quiet and live.link.has_errors:
            what = "it wrote to stderr, which the binding forbids (`is_quiet`)"
            raise live.link.failed(GARBLED, what, during)
        if answer.member == "error":
            # Its process runs on, but may be in the middle of something.
            live.link.end()
            raise ImplementationFailure("raised", f"{answer.value}, {during}")
        if expected and answer.member != expected:
            what = f"it was `{expected}` before and is `{answer.member}` now"
            raise live.link.failed(UNREPEATABLE, what, during)
        return answer

    def _running(self) -> _Live | None:
        """The process, if it runs and was started by the current process."""
        if self._live is not None and (self._live.link.has_ended or not self._live.link.is_ours):
            self._forget()
        return self._live

    def _present(self) -> _Live:
        """The process that has been used since the last start or rewind."""
        live = self._running()
        if live is None:
            # A new one would be in the initial state, and its answers about another one.
            raise ImplementationFailure(DIED, "its process has ended before, or was another process's")
        return live

    def _running_or_new(self) -> _Live:
        """The running process, or a new one; raises `BindingError` if it cannot be started."""
        live = self._running()
        if live is not None:
            return live
        terms = self.terms
        try:
            with own_needs():
                link = Link(terms.launch)
        except (OSError, ValueError) as error:
            name = terms.launch.command[0]
            hint = f"install it, or correct `command`; it is started in {terms.launch.folder.name}/"
            raise BindingError((Mistake(f"`{name}` cannot be started: {error}", hint),)) from None
        # Before the first request, so that a process that never answers is ended with the system as well.
        self._end = weakref.finalize(self, link.end)
        hello = self._greeted(link)
        if hello.protocol != wire.VERSION:
            link.end()
            hint = f"answer `hello` with protocol {wire.VERSION}, or use the specchk that has the other one"
            what = f"the implementation has protocol {hello.protocol}, this specchk {wire.VERSION}"
            raise BindingError((Mistake(what, hint),))
        self._live = _Live(link, hello, 1)
        return self._live

    def _greeted(self, link: Link) -> wire.Hello:
        request = WireRequest("hello", {"protocol": wire.VERSION, **self.terms.hello})
        during = "starting (`hello`)"
        link.send(request.line(0))
        line = link.receive(self.terms.start_timeout_s, during)
        try:
            answer = wire.answer_of(line, 0, request)
            if answer.member == "error":
                raise BrokenProtocol(f"it answered with an error: {answer.value}")
            return wire.hello_of(answer.value)
        except BrokenProtocol as error:
            raise link.failed(GARBLED, str(error), during) from None

    def _forget(self) -> None:
        """Kill the running process; its state is no longer known."""
        if self._end is not None:
            self._end()
        self._live, self._end = None, None
        self._waiting.clear()
        self._seen, self._kept = None, None

    def end(self) -> None:
        """End the process in an orderly way if possible, otherwise by force."""
        live = self._running()
        if live is not None:
            live.link.send(WireRequest("quit").line(live.number))
            try:
                live.link.receive(QUIT_S, "ending")
                live.link.wait(QUIT_S)
            except ImplementationFailure:
                pass  # nothing depends on how it ends
        self._forget()
