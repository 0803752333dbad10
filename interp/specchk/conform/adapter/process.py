"""A binding to an implementation in any language: a process driven by JSON lines over a pipe.

    class Locks(ProcessBinding):
        spec, model, folder = "lock_service.spec", "two", Path(__file__).parent
        command, implementation = ("node", "adapter.js"), ("*.js",)
        acquire = request("acquire")              # {"do": "acquire", "args": {"c": "c1"}}

        def observed(self, system, seen):         # from {"state": ...} to the spec's variables
            return {"holder": seen["holder"], ...}

Not here: the protocol (`wire`), its process (`link`, `remote`), copies and builds (`workshop`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

from specchk.conform.adapter.link import Launch
from specchk.conform.adapter.remote import KeptRemote, RemoteSystem, Terms
from specchk.conform.adapter.workshop import Workshop, implementation_files, workshop
from specchk.conform.contract import Answer, Binding, action, project
from specchk.conform.contract.binding import Mistake, OutsideSpec, restore, snapshot
from specchk.conform.contract.known_bad import BadFile, BadStart
from specchk.conform.contract.values import plain, raw
from specchk.ir.program import Program
from specchk.processes import own_needs
from specchk.report.json import model_json, value_json
from specchk.report.read import Unreadable, value_from_json


def request(name: str, do: str = "", ways: tuple[str, ...] = ()) -> Callable[..., Answer]:
    """A handler of the spec's action `name` that sends it, or `do`, with the arguments by name."""

    @action(name, ways)
    def handler(self: ProcessBinding, system: RemoteSystem, *args: Any) -> Answer:
        return system.do(do or name, self.named(name, *args))

    return handler


class ProcessBinding(Binding[RemoteSystem]):
    """The base of bindings to processes; one process runs at a time for each binding.

    `command` starts it in `folder`, after `build` has written its output into `{build}`; both are lists of
    words, no shell.  A request that is not answered within `timeout_s` is a finding, as is anything on
    stderr if `is_quiet` is set.
    """

    folder: ClassVar[Path]
    command: ClassVar[tuple[str, ...]] = ()
    build: ClassVar[tuple[str, ...]] = ()
    environment: ClassVar[Mapping[str, str]] = MappingProxyType({})
    timeout_s: ClassVar[float] = 10.0
    start_timeout_s: ClassVar[float] = 30.0
    build_timeout_s: ClassVar[float] = 600.0
    is_quiet: ClassVar[bool] = False
    runs_elsewhere: ClassVar[bool] = True

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self._mistake: BadFile | BadStart | None = None
        self._workshop: Workshop | None = None
        self._remote: RemoteSystem | None = None
        self._types = {variable.name: variable.type for variable in program.variables}
        self._params = {declared.name: declared.params for declared in program.actions}

    @classmethod
    def own_mistakes(cls) -> Iterator[Mistake]:
        """The errors in the class attributes that describe the process."""
        if not cls.command:
            yield Mistake(
                "the binding has no `command`", 'write command = ("node", "adapter.js"), word by word'
            )
        if not isinstance(getattr(cls, "folder", None), Path):
            yield Mistake("the binding has no `folder`", "write folder = Path(__file__).parent")
            return
        if not cls.implementation:
            hint = 'write implementation = ("*.js",): the lock has their fingerprint'
            yield Mistake("the binding does not name the files of its implementation", hint)
        for pattern in cls.implementation:
            if not implementation_files(cls.folder.resolve(), (pattern,)):
                yield Mistake(f"no file is named by `{pattern}` of `implementation`", "correct the pattern")

    @classmethod
    def with_mistake(cls, program: Program, mistake: BadFile | BadStart) -> ProcessBinding:
        """The binding to the implementation with a control's mistake planted."""
        binding = cls(program)
        binding._mistake = mistake
        return binding

    def start(self) -> RemoteSystem:
        """The process in its initial state; raises `NoSuchText` and `BindingError`."""
        if self._remote is None:
            self._remote = RemoteSystem(self._terms())
        self._remote.start()
        return self._remote

    def _terms(self) -> Terms:
        cls = type(self)
        launch = Launch(cls.command, cls.folder.resolve(), cls.environment)
        with own_needs():
            self._workshop = workshop(
                launch, cls.build, cls.implementation, cls.build_timeout_s, self._mistake
            )
        hello = model_json(self.program)
        return Terms(self._workshop.launch, hello, cls.timeout_s, cls.start_timeout_s, cls.is_quiet)

    @snapshot
    def save(self, system: RemoteSystem) -> KeptRemote:
        """Like `RemoteSystem.keep`."""
        return system.keep()

    @restore
    def rewind(self, kept: KeptRemote) -> RemoteSystem:
        """Return the process to a saved state."""
        system = self._remote or self.start()
        system.back(kept)
        return system

    @project
    def state(self, system: RemoteSystem) -> Mapping[str, Any]:
        """The values of the spec's variables."""
        return self.observed(system, system.observe())

    def observed(self, system: RemoteSystem, seen: Any) -> Mapping[str, Any]:
        """The spec's variables from an observation; here its members, in the format of docs/json.md."""
        if not isinstance(seen, dict):
            raise OutsideSpec(f"the observation is not an object: {seen!r}")
        return {
            name: self.value(name, value) if name in self._types else value for name, value in seen.items()
        }

    def value(self, variable: str, data: Any) -> Any:
        """The plain value of a variable from JSON; raises `OutsideSpec`."""
        kind = self._types[variable]
        try:
            return plain(value_from_json(data, kind), kind)
        except Unreadable as error:
            raise OutsideSpec(f"{variable}: {error}") from None

    def named(self, name: str, *args: Any) -> dict[str, Any]:
        """An action's arguments by parameter name, in JSON; a way is named `way`."""
        params = self._params[name]
        named_args = {
            param.name: value_json(raw(arg, param.type), param.type)
            for param, arg in zip(params, args[: len(params)], strict=True)
        }
        return named_args if len(args) == len(params) else {**named_args, "way": args[len(params)]}
