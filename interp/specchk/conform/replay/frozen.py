"""A divergence as a test file that runs without specchk: the path, the spec's states, and a small runner.

    def test_the_implementation_follows_the_spec():
        with binding_of(BINDING, "Bank", SPEC, "9a3f07c2d41b6e58") as binding:
            bank = Follower(binding, INITIAL)
            bank.step("transfer", ("a1", "a2"), "", {"balance": {"a1": 1, "a2": 3}})
            bank.step("transfer", ("a1", "a2"), "", {"balance": {"a1": 0, "a2": 4}})

The test fails as long as the implementation diverges and passes once it conforms to the spec, so
it can be kept.  It has the spec's values, not the spec: if the spec changes, freeze it again.  Its
steps and values are sealed, so that a test that was changed since does not pass.  It
needs only the binding and the implementation; `frozen_run` has the stand-ins for specchk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.resources import files
from os.path import relpath
from pathlib import Path
from pprint import pformat
from textwrap import dedent, indent
from types import MappingProxyType
from typing import Any

from specchk.compile.instantiate import Instance
from specchk.conform.contract.binding import Binding
from specchk.conform.contract.values import plain
from specchk.conform.replay.divergence import WORDS, differences, step_text, wanted
from specchk.conform.replay.frozen_run import Bag as Bag_
from specchk.conform.replay.frozen_run import Items, Some, seal_of
from specchk.conform.replay.place import Divergence
from specchk.conform.replay.replay import Replayer
from specchk.ir.program import Program
from specchk.ir.types import Bag, Bool, Enum, Int, Map, Option, Record, Seq, Set, Sort, Type, Union, show
from specchk.meaning.values import State, positions
from specchk.search.verdict import Step

WIDTH = 110
HARNESS = MappingProxyType(
    {
        "ambiguous": "the binding observes too little, which a test of the implementation cannot show",
        "fault": "the fault struck inside a step, which only the harness can arrange",
    }
)
_RULER = "# -- the runner"


class CannotFreeze(Exception):
    """A divergence that no test of the implementation can reproduce; the text gives the reason."""


def frozen(
    instance: Instance, binding: Binding[Any], path: Path, divergence: Divergence, target: Path
) -> str:
    """The text of a test file at `target`, for the binding in the file `path`; raises `CannotFreeze`."""
    if divergence.kind in HARNESS:
        raise CannotFreeze(HARNESS[divergence.kind])
    if binding.runs_elsewhere:
        raise CannotFreeze(
            "the implementation is a process, which only specchk drives; repeat it with --case"
        )
    program, name = instance.program, type(binding).__name__
    runner = files("specchk.conform.replay").joinpath("frozen_run.py").read_text(encoding="utf-8")
    # The runner is put in as text, with its imports at the head: a frozen test needs nothing of specchk.
    imports, rest = runner[runner.index("from __future__") :].split("\n\n\n", 1)
    # Relative, so that the test still finds the binding in another checkout.
    beside = relpath(path.resolve(), target.resolve().parent).replace("\\", "/")
    writer = _Writer(binding)
    calls = [
        "        system = Follower(binding, INITIAL)",
        *(indent(call, " " * 8) for call in writer.calls(divergence)),
    ]
    data = [
        f"BINDING = Path(__file__).resolve().parent / {beside!r}",
        f"SPEC = {_text(_spec(program))}",
        f"INITIAL = {_text(writer.observed(divergence.trace.initial))}",
    ]
    seal = _seal(data[1:], calls)
    test = [
        "def test_the_implementation_follows_the_spec() -> None:",
        f'    """{_claim(divergence)}"""',
        f"    with binding_of(BINDING, {name!r}, SPEC, {seal!r}) as binding:",
        *calls,
    ]
    head = f'"""{_head(program, name, divergence)}\n"""\n\n{imports}'
    return "\n\n\n".join([head, "\n".join(data), "\n".join(test), f"{_RULER}\n\n\n{rest.rstrip()}"]) + "\n"


class _Listener:
    """Replaces the runner of steps, but only records the calls."""

    def __init__(self, binding: object, initial: Mapping[str, Any]) -> None:
        self.heard: list[Any] = [dict(initial)]

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *told: self.heard.append((name, *told) if told else name)


def _seal(data: Sequence[str], calls: Sequence[str]) -> str:
    """The seal of a test's text: of everything that affects its run."""
    names: dict[str, Any] = {
        "Follower": _Listener,
        "Bag": Bag_,
        "Items": Items,
        "Some": Some,
        "binding": None,
    }
    # The text is run with a listener in place of the implementation: its content is sealed, not its
    # layout.
    exec("\n".join([*data, dedent("\n".join(calls))]), names)  # noqa: S102 - text that was just made here
    return seal_of([names["SPEC"], *names["system"].heard])


def _head(program: Program, name: str, divergence: Divergence) -> str:
    lines = [
        f"Frozen by specchk: {WORDS[divergence.kind]}.",
        "",
        f"{program.spec}, model {program.model}, on {name}.  {step_text(divergence)}".rstrip(),
        *([divergence.reason] if divergence.kind != "state" and divergence.reason else []),
        *(
            f"{change.path}: the spec has {change.before}, the implementation {change.after}"
            for change in differences(program, divergence, wanted(program, divergence))
        ),
        "",
        "Runs without specchk: the runner below replaces the parts of it that the binding imports.",
    ]
    return "\n".join(line.replace("\\", "\\\\").replace('"""', "'''") for line in lines)


def _claim(divergence: Divergence) -> str:
    if divergence.step is None:
        return "The implementation starts, and is restored, as in the spec."
    return f"Step {len(divergence.trace.steps) + 1}, {divergence.step.action}, has the outcome of the spec."


def _spec(program: Program) -> dict[str, Any]:
    """The names of its program that a binding needs: names, sorts, constants."""
    return {
        "spec": program.spec,
        "model": program.model,
        "sorts": {sort.name: sort.members for sort in program.sorts},
        "constants": {constant.name: exact(constant.value, constant.type) for constant in program.constants},
    }


class _Writer:
    """Writes the calls that follow a path."""

    def __init__(self, binding: Binding[Any]) -> None:
        self.replayer = Replayer(binding)
        self.unobserved = binding.unobserved

    def calls(self, divergence: Divergence) -> Iterator[str]:
        """One call for each step, the last for the divergence: a step that the spec has or lacks."""
        before = divergence.trace.initial
        for step, way in zip(divergence.trace.steps, divergence.ways, strict=True):
            yield self._call(before, step, way, (step.state,))
            before = step.state
        if divergence.step is not None:
            instance = self.replayer.spec.instance(divergence.step)
            # Successors by the spec and not those of the report: none means that the step must be refused.
            after = self.replayer.spec.allowed(before, instance)
            yield self._call(before, divergence.step, divergence.way, after)
        elif divergence.kind in ("restored", "reopened"):
            yield f"system.is_{'kept' if divergence.kind == 'restored' else 'on_disk'}()"

    def _call(self, before: State, step: Step, way: str, after: tuple[State, ...]) -> str:
        instance = self.replayer.spec.instance(step)
        params = self.replayer.program.actions[instance.index].params
        given = tuple(exact(arg, one.type) for arg, one in zip(instance.args, params, strict=True))
        args = f"{step.action!r}, {given!r}, {way!r}"
        if not after:
            return f"system.no_step({args})"
        changes = [f"{indent(_text(self._changed(before, state)), '    ')},\n" for state in after]
        return f"system.step(\n    {args},\n{''.join(changes)})"

    def _changed(self, before: State, after: State) -> dict[str, Any]:
        slots = {variable.name: slot for slot, variable in enumerate(self.replayer.program.variables)}
        now = self.observed(after)
        return {name: value for name, value in now.items() if before[slots[name]] != after[slots[name]]}

    def observed(self, state: State) -> dict[str, Any]:
        """The observed variables, as expressions."""
        pairs = zip(self.replayer.program.variables, state, strict=True)
        return {v.name: exact(value, v.type) for v, value in pairs if v.name not in self.unobserved}


class _As:
    """A piece of source code, written without quotes."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def _text(items: dict[str, Any]) -> str:
    """A dict as text, on one line if it is short, else one item per line."""
    if len(repr(items)) <= WIDTH - 16:
        return repr(items)
    texts = [pformat(value, width=WIDTH - 24, sort_dicts=False) for value in items.values()]
    lines = [
        f"    {name!r}: {_hanging(text, len(name) + 8)},\n" for name, text in zip(items, texts, strict=True)
    ]
    return "{\n" + "".join(lines) + "}"


def _hanging(text: str, by: int) -> str:
    first, *rest = text.split("\n")
    return "\n".join([first, *(" " * by + line for line in rest)])


def exact(value: Any, kind: Type) -> Any:
    """A value in plain form whose `repr` recreates it, using the names of `frozen_run`."""
    match kind:
        case Bool() | Int() | Enum() | Sort():
            return plain(value, kind)
        case Option():
            item = exact(value[0], kind.item) if value else None
            return _As(f"Some({item!r})") if value and isinstance(kind.item, Option) else item
        case Record(is_tuple=True):
            return tuple(exact(item, part) for (_, part), item in zip(kind.fields, value, strict=True))
        case Record():
            return _fields(value, kind)
        case Union():
            name, fields = kind.variants[value[0]]
            if fields.element is not None:
                return plain(value, kind)
            return name, _fields(value[1], fields)
        case Map():
            keys = [exact(key, kind.key) for key in positions(kind.key)]
            if not all(isinstance(key, bool | int | str) for key in keys):
                raise CannotFreeze(f"a key of type {show(kind.key)} has no short form in Python")
            return dict(zip(keys, (exact(item, kind.value) for item in value), strict=True))
        case Set(keyed=True):
            keys = [exact(key, kind.pair[0]) for key, _ in value]
            if not all(isinstance(key, bool | int | str) for key in keys):
                raise CannotFreeze(f"a key of type {show(kind.pair[0])} has no short form in Python")
            return dict(zip(keys, (exact(item, kind.pair[1]) for _, item in value), strict=True))
        case Set() if isinstance(kind.item, Bool | Int | Enum | Sort):
            return (
                _As("{" + ", ".join(repr(plain(item, kind.item)) for item in value) + "}") if value else set()
            )
        case Set() | Bag():
            name = "Items" if isinstance(kind, Set) else "Bag"
            return _As(f"{name}({[exact(item, kind.item) for item in value]!r})")
        case Seq():
            return [exact(item, kind.item) for item in value]


def _fields(value: Any, kind: Record) -> dict[str, Any]:
    return {name: exact(item, part) for (name, part), item in zip(kind.fields, value, strict=True)}
