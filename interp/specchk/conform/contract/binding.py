"""The interface between an implementation and a spec: a class with one method for each action.

    class Bank(Binding[Ledger]):
        spec, model = "bank.spec", "small"           # the spec's path, from this file's folder

        def start(self) -> Ledger: ...               # a system in the spec's initial state

        @action("transfer")
        def transfer(self, ledger, source, target, amount):
            return Accepted() if ledger.move(source, target, amount) else Refused("too poor")

        @project
        def state(self, ledger): return {"balance": dict(ledger.balance)}

Arguments and states are plain values (`conform.contract.values`).  An action applies the spec's action to
the system, and reports whether the implementation accepted it.  The projection gives every
variable of the spec, except for those in `unobserved`, each with its reason.

Invariants: a binding is checked against its spec before anything runs; every mistake is found at
once.  Not here: the uses of a binding (`replay`, `product`, `walks`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from inspect import signature
from linecache import getlines
from pathlib import Path
from types import FunctionType, MappingProxyType
from typing import Any, ClassVar, Generic, TypeVar

from msgspec import Struct, field

from specchk.conform.contract.known_bad import BadFile, BadStart, Control
from specchk.conform.contract.values import plain
from specchk.ir.program import Program
from specchk.lang.text.diagnostics import nearest

S = TypeVar("S")
F = TypeVar("F", bound=Callable[..., Any])
_MARK = "_specchk_binds"
_INTERRUPTION = "interruption"


class Accepted(Struct, frozen=True):
    """The implementation accepted the step."""


class Refused(Struct, frozen=True):
    """The implementation received the request and refused the step."""

    reason: str


class Impossible(Struct, frozen=True):
    """No request to the implementation is possible: no such message, process or budget.

    Counted separately, because a binding that always returns this tests nothing.
    """

    reason: str


Answer = Accepted | Refused | Impossible


class At(Struct, frozen=True):
    """A suite of a tier: on a model, with these constants, as given by `--model`, `--set` and `--suite`."""

    model: str | None = None
    bounds: Mapping[str, str] = field(default_factory=dict)
    suite: str = "classes"


class OutsideSpec(Exception):
    """Raised by a projection: the implementation is in a state that the spec cannot express."""


class BoundAction(Struct, frozen=True):
    """One action of a binding; `ways` are the choices of its environment."""

    action: str
    method: str
    ways: tuple[str, ...]


class Interruption(Struct, frozen=True):
    """A fault that may occur within steps, and the variables that it may leave unchanged."""

    action: str
    method: str
    aside: tuple[str, ...]


class Mistake(Struct, frozen=True):
    """An error in a binding, how to correct it, and where it is, such as `bound.py:8` (empty: unknown)."""

    message: str
    hint: str
    at: str = ""

    def __str__(self) -> str:
        place = f"{self.at}: " if self.at else ""
        return f"{place}{self.message}\n  hint: {self.hint}"


class BindingError(Exception):
    """A binding that does not fit its spec; `mistakes` lists all errors."""

    def __init__(self, mistakes: tuple[Mistake, ...]) -> None:
        self.mistakes = mistakes
        super().__init__("\n".join(map(str, mistakes)))

    # Exceptions are pickled by their `args`, which is the text here; workers hand them to the parent.
    def __reduce__(self) -> tuple[type[BindingError], tuple[object, ...]]:
        return type(self), (self.mistakes,)


def action(name: str, ways: tuple[str, ...] = ()) -> Callable[[F], F]:
    """Bind a method to the spec's action `name`.

    With `ways` it is tried in each of them, given as its last argument: the environment's choices
    that the spec leaves open (here: whether a response waits).
    """
    return _marker((name, ways))


def never(name: str, reason: str) -> Callable[..., Answer]:
    """Return the method for the spec's action `name` of an implementation that never takes it."""

    @action(name)
    def method(*_: object) -> Answer:
        return Impossible(reason)

    return method


def project(function: F) -> F:
    """Mark the method that returns the plain state of a system."""
    return _marker("project")(function)


def snapshot(function: F) -> F:
    """Mark the method that saves a system's state: `keep(system)`; its result never changes."""
    return _marker("snapshot")(function)


def restore(function: F) -> F:
    """Mark the method that restores a running system from a saved state: `back(kept)`."""
    return _marker("restore")(function)


def unchanged(function: F) -> F:
    """Mark the method that compares systems with their snapshots: `as_kept(kept)`.

    It returns a function of a system that was restored from it and refused a step, or was reopened: True only
    if the projections of both are certain to be equal, such as those of shared parts.  Optional: without
    it such systems are projected; with it, those that are not found equal, and some of the others.
    """
    return _marker("unchanged")(function)


def reopen(function: F) -> F:
    """Mark the method that closes and reopens all files of a system: `again(system)`.

    The returned system must be in the same state: a restart reads what was written.
    """
    return _marker("reopen")(function)


def interruption(name: str, aside: tuple[str, ...] = ()) -> Callable[[F], F]:
    """Mark the method that injects the fault `name`, an action of the spec, in the middle of a step.

    `cut(system, *arguments, moment, step)` calls `step()`, which lets the implementation take some
    step, with the fault set to strike at the `moment`-th occasion (0: the first), and returns whether it
    struck, best as words for where (``in `rename a to b` ``), which a report shows.  The system is then one
    in which the spec's fault struck before the step or after it; only the variables in `aside`, the
    environment's memory, may still be unchanged.
    """
    return _marker((_INTERRUPTION, name, aside))


def _marker(what: object) -> Callable[[F], F]:
    def mark(function: F) -> F:
        setattr(function, _MARK, what)
        return function

    return mark


class Binding(Generic[S]):
    """The base of all bindings; `program` is the spec under the model, `constants` its plain constants.

    `smoke`, `gate` and `exhaustive` are the suites of these tiers; `controls` are the errors that the gate
    must detect.  `implementation` are the files under test, as patterns from the binding's folder;
    without any, the modules that the binding imports, and those that they import.  `companions` are files
    that judge the same implementation in other ways, such as tracings, as patterns: the lock has them, too.
    """

    spec: ClassVar[str] = ""
    model: ClassVar[str | None] = None
    unobserved: ClassVar[Mapping[str, str]] = MappingProxyType({})
    smoke: ClassVar[tuple[At, ...]] = (At(),)
    gate: ClassVar[tuple[At, ...]] = (At(),)
    exhaustive: ClassVar[tuple[At, ...]] = (At(suite="product"),)
    controls: ClassVar[tuple[Control, ...]] = ()
    implementation: ClassVar[tuple[str, ...]] = ()
    companions: ClassVar[tuple[str, ...]] = ()
    timeout_s: ClassVar[float] = 60.0
    """Seconds after which a method that has not returned has failed (`hung`), by ticks of `hangs`."""
    runs_elsewhere: ClassVar[bool] = False
    """Whether the implementation runs in another process, whose calls are not seen here."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.constants = {const.name: plain(const.value, const.type) for const in program.constants}

    @classmethod
    def tier(cls, name: str) -> tuple[At, ...]:
        """The suites of a tier."""
        return {"smoke": cls.smoke, "gate": cls.gate, "exhaustive": cls.exhaustive}[name]

    @classmethod
    def against(cls, program: Program) -> Binding[S]:
        """The binding for a control's wrong spec; a binding that rejects other rules overrides this."""
        return cls(program)

    @classmethod
    def with_mistake(cls, program: Program, mistake: BadFile | BadStart) -> Binding[S]:
        """The binding to the implementation with a control's mistake planted; raises `BindingError`."""
        hint = "derive the binding from ProcessBinding, or plant a BadCode"
        what = f"the control `{mistake.name}` is for an implementation that is a process"
        raise BindingError((Mistake(what, hint),))

    @classmethod
    def own_mistakes(cls) -> Iterator[Mistake]:
        """The errors that a kind of binding detects in itself, for any spec."""
        yield from ()

    def start(self) -> S:
        """A new system in the spec's initial state."""
        raise NotImplementedError("a binding needs a method `start` that returns a system")

    @snapshot
    def _keep(self, system: S) -> Any:
        """Save a deep copy, unless the binding defines a cheaper method."""
        return deepcopy(system)

    @restore
    def _back(self, kept: Any) -> S:
        system: S = deepcopy(kept)
        return system

    @classmethod
    def actions(cls) -> list[BoundAction]:
        """The bound actions, in the order of their methods; a name bound twice appears twice."""
        marks = [(name, mark) for name, mark in _marks(cls) if isinstance(mark, tuple)]
        # Tuples are of actions and interruptions; a plain text is a role that one method has.
        return [BoundAction(mark[0], name, mark[1]) for name, mark in marks if mark[0] != _INTERRUPTION]

    @classmethod
    def interruptions(cls) -> list[Interruption]:
        """The faults that may occur in the middle of a step."""
        marks = [(name, mark) for name, mark in _marks(cls) if isinstance(mark, tuple)]
        return [Interruption(m[1], name, m[2]) for name, m in marks if m[0] == _INTERRUPTION]

    @classmethod
    def marked(cls, what: str) -> str | None:
        """The name of the method with a mark, in the most derived class; None if there is none."""
        names = [name for name, mark in _marks(cls) if mark == what]
        return names[-1] if names else None

    @classmethod
    def comparison(cls) -> str | None:
        """The name of the method with `@unchanged` for this class's snapshots; None if there is none."""
        compare, keep = cls.marked("unchanged"), cls.marked("snapshot")
        if compare is None or keep is None:
            return None
        # A class that keeps systems in another way than the one that it derives from needs its own.
        made, kept = (next(n for n, base in enumerate(cls.__mro__) if name in vars(base))
                      for name in (compare, keep))  # fmt: skip
        return compare if made <= kept else None


def _marks(cls: type) -> Iterator[tuple[str, Any]]:
    """The methods with marks, those of base classes first, without overridden ones."""
    seen: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        for name, member in vars(base).items():
            # An override without a mark takes the base's away, and one with a mark comes in its own place
            # of the order.
            seen.pop(name, None)
            if hasattr(member, _MARK):
                seen[name] = getattr(member, _MARK)
    yield from seen.items()


def written_at(member: Any) -> str:
    """Where a class or a method is written: `bound.py:8`; empty for what is made and not written."""
    if isinstance(member, type):
        # A binding's file is run and not imported, so that `inspect` does not know its classes.
        files = [own.__code__.co_filename for own in vars(member).values() if isinstance(own, FunctionType)]
        file = files[0] if files else ""
        starts = (number for number, line in enumerate(getlines(file), 1)
                  if line.split("(")[0].split(":")[0].strip() == f"class {member.__name__}")  # fmt: skip
        first = next(starts, 0)
    else:
        code = getattr(member, "__code__", None)
        file, first = (code.co_filename, code.co_firstlineno) if code else ("", 0)
    return f"{Path(file).name}:{first}" if first else ""


def mistakes(cls: type[Binding[Any]], program: Program) -> tuple[Mistake, ...]:
    """All mistakes by which a binding does not fit its spec, except values of the projection."""
    return (*_wrong_actions(cls, program), *_wrong_variables(cls, program), *cls.own_mistakes())


def _wrong_actions(cls: type[Binding[Any]], program: Program) -> Iterator[Mistake]:
    wanted = [declared.name for declared in program.actions]
    bound = [handler.action for handler in cls.actions()]
    for name in wanted:
        if name not in bound:
            hint = f'write a method with @action("{name}")'
            yield Mistake(f"the spec's action `{name}` is not bound", hint, written_at(cls))
    for name, method in {handler.action: handler.method for handler in cls.actions()}.items():
        if name not in (*wanted, *program.left_out_actions):
            hint = nearest(name, wanted) or f"the spec has {', '.join(wanted)}"
            at = written_at(getattr(cls, method))
            yield Mistake(f"`{name}` is bound, but the spec has no such action", hint, at)
        elif bound.count(name) > 1:
            hint = "keep one method for each action"
            yield Mistake(
                f"`{name}` is bound {bound.count(name)} times", hint, written_at(getattr(cls, method))
            )
    yield from _wrong_parameters(cls, program)


def _wrong_parameters(cls: type[Binding[Any]], program: Program) -> Iterator[Mistake]:
    """A call that Python would refuse is a mistake of the binding, and no failure of the implementation."""
    params = {declared.name: [param.name for param in declared.params] for declared in program.actions}
    for handler in cls.actions():
        if handler.action in params:
            names = ["system", *params[handler.action], *(["way"] if handler.ways else [])]
            try:
                signature(getattr(cls, handler.method)).bind("self", *names)
            except TypeError as error:
                hint = f"write `def {handler.method}({', '.join(['self', *names])})`"
                wrong = f"`{handler.method}` does not fit `{handler.action}`: {error}"
                yield Mistake(wrong, hint, written_at(getattr(cls, handler.method)))


def _wrong_variables(cls: type[Binding[Any]], program: Program) -> Iterator[Mistake]:
    known = [variable.name for variable in program.variables]
    if cls.marked("project") is None:
        hint = "mark the method that returns the state with @project"
        yield Mistake("the binding has no projection", hint, written_at(cls))
    for name, reason in cls.unobserved.items():
        if name not in known:
            hint = nearest(name, known) or f"the spec has {', '.join(known)}"
            wrong = f"`{name}` is listed as unobserved, but the spec has no such variable"
            yield Mistake(wrong, hint, written_at(cls))
        elif not reason.strip():
            hint = "give the reason why it cannot be observed"
            yield Mistake(f"no reason is given why `{name}` is unobserved", hint, written_at(cls))
    # A binding that observes nothing agrees with everything.
    if known and set(known) <= set(cls.unobserved):
        wrong = "no variable is observed, so nothing would be compared"
        yield Mistake(wrong, "project at least one", written_at(cls))
