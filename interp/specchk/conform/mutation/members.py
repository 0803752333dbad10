"""The members of a gate: all parts that may kill a mutant, each consisting of named tests.

    Replay("classes slow_follower", At("slow_follower"))                   cases: each is a test
    Replay("walks slow_follower", At("slow_follower", suite="walks"))      each `PER_TEST` walks are a test
    Replay("product ...", At(..., suite="product"), limit=300)             one test; so is `faults`
    Recorded("recordings", "tracing.py", record, range(40))                runs; each is a test (`recorded`)
    Outside("power loss", run, about=("replog.store",))                    any other check

A folder of mutants may have a `members.py` with the tuple `MEMBERS`, cheapest first; without it the
members are the binding's gate, and walks over its model.

Invariants: a test's name is the same in every run; a member that does not load the module that a mutant
changes is not run.  Not here: processes, and the counts (`mutate`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from time import perf_counter
from types import ModuleType
from typing import Any, Protocol, TypeVar

from msgspec import Struct, field

from specchk.compile.instantiate import Instance, instantiate
from specchk.conform.contract.binding import At, Binding, BindingError
from specchk.conform.contract.failures import LEAVING, is_implementations
from specchk.conform.contract.load import only_class
from specchk.conform.covers.cache import cached_suite
from specchk.conform.covers.cases import MADE_OF_CASES, Suite, label_of
from specchk.conform.gate.choices import listed_of
from specchk.conform.gate.lock import of_spec
from specchk.conform.gate.tiers import Part, SuiteBudget, run_whole, with_choices
from specchk.conform.mutation.patches import run_file
from specchk.conform.recordings.validate import Validator
from specchk.conform.replay.place import Divergence
from specchk.conform.replay.replay import Replayer
from specchk.conform.replay.runner import Runner
from specchk.conform.replay.suites import SuiteResult, SuiteWalks, run_walks
from specchk.conform.work import lock_file
from specchk.conform.work.effort import ENDLESS, TooMuch, WorkMeter
from specchk.lang.frontend import CheckedSpec, check

T = TypeVar("T")
# Walks that are one test: few, so that a kill is soon repeated, and more than one, since a test has its cost.
PER_TEST = 5
WALKS = SuiteWalks(5, 100, 50)


class Kill(Struct, frozen=True):
    """A test that failed under a mutant: its member, its failure, and the seconds it took.

    `is_endless`: it was stopped, since it did more work than any test of its member should.
    """

    member: str
    test: str
    reason: str
    seconds: float
    is_endless: bool = False


class Reporter(Struct):
    """Receives the outcomes of tests; `check` and `note` return whether more are needed."""

    enough: int  # failures of different tests; 0: all of them
    work: Mapping[str, int]  # that one test of a member may do; as much as it likes, where it is not here
    on_kill: Callable[[Kill], None]
    meter: WorkMeter = field(default_factory=WorkMeter)
    member: str = ""
    tests: int = 0
    most: int = 0  # work of one test
    failed: set[tuple[str, str]] = field(default_factory=set)  # member, test
    begun: float = field(default_factory=perf_counter)
    is_endless: bool = False  # the last test that had a limit

    def check(self, test: str, run: Callable[[], str]) -> bool:
        """Run a test, which returns the reason of its failure, or nothing; exceptions are also failures."""
        try:
            with self.limit():
                reason = run()
        except TooMuch as much:
            reason, self.is_endless = str(much), True
        except LEAVING as error:
            if not is_failure(error):
                raise
            reason = f"{type(error).__name__}: {error}"
        return self.note(test, reason)

    def note(self, test: str, reason: str) -> bool:
        """Count a test; `reason` is that of its failure, empty if it passed and ended."""
        self.tests += 1
        # Also where the test came back: a mutant's `except BaseException` may have caught what should have
        # ended it.
        is_endless, self.is_endless = self.is_endless or self.meter.is_over, False
        if reason or is_endless:
            self.failed.add((self.member, test))
            first = (reason or "exceeded its number of loops and calls").splitlines()[0][:200]
            seconds = perf_counter() - self.begun
            self.on_kill(Kill(self.member, test, first, seconds, is_endless))
        return self.needs_more

    def check_each(self, tests: Iterable[tuple[str, T]], run: Callable[[T], str]) -> None:
        """Run tests, each by its name and subject, as long as more are needed."""
        for test, subject in tests:
            if not self.check(test, partial(run, subject)):
                break

    @property
    def needs_more(self) -> bool:
        """Whether more tests are needed."""
        return not self.enough or len(self.failed) < self.enough

    @contextmanager
    def limit(self) -> Iterator[None]:
        """Raise `TooMuch` in code that does more work than the member's tests may."""
        with self.meter.giving(self.work.get(self.member, ENDLESS)):
            try:
                yield
            finally:
                self.most = max(self.most, self.meter.done)
                self.is_endless = self.meter.is_over


class Bench(Struct):
    """Data that do not depend on mutants, computed once: the programs of a spec and their suites."""

    folder: Path
    main: str  # the binding's file
    spec: Path
    checked: CheckedSpec
    programs: dict[str, Instance] = field(default_factory=dict)
    suites: dict[str, Suite] = field(default_factory=dict)
    specs: dict[str, CheckedSpec] = field(default_factory=dict)
    validators: dict[str, Validator] = field(default_factory=dict)
    gates: dict[str, tuple[Part, ...]] = field(default_factory=dict)  # of other bindings (`other_gates`)

    def instance(self, at: At) -> Instance:
        """The spec under a model and its bounds."""
        key = repr((at.model, sorted(at.bounds.items())))
        if key not in self.programs:
            model = at.model or self.binding().model
            self.programs[key] = instantiate(self.checked, model, at.bounds)
        return self.programs[key]

    def suite(self, at: At, max_states: int | None) -> Suite:
        """The cases at a model."""
        key = repr((at.model, sorted(at.bounds.items()), at.suite, max_states))
        if key not in self.suites:
            instance, bounds = self.instance(at), tuple(at.bounds.items())
            program = instance.program
            made = cached_suite(instance, at.suite, bounds, max_states)
            known = lock_file.read(self.folder / lock_file.NAME).choices
            label = label_of(program.model, bounds)
            listed = listed_of(known, of_spec(self.checked)[0], label, program)
            # As the gate has it, with the ways that only this implementation goes.
            self.suites[key] = with_choices(made, program, listed)
        return self.suites[key]

    def binding(self, file: str | None = None) -> type[Binding[Any]]:
        """The binding class of a file of the folder, by default the main one, loaded with the patches."""
        return binding_in(load(self.folder / (file or self.main)))


def bench_of(path: Path) -> Bench:
    """The bench of a binding's file; raises the exceptions of loading it."""
    cls = binding_in(load(path))
    spec = (path.parent / cls.spec).resolve()
    return Bench(path.parent, path.name, spec, check(str(spec)))


class SuiteMember(Struct, frozen=True):
    """A suite on a model."""

    name: str
    at: At
    limit: int | None = None  # of states
    walks: SuiteWalks = WALKS

    def prepare(self, bench: Bench) -> None:
        """Compute everything that does not depend on the implementation."""
        bench.instance(self.at)
        if self.at.suite in MADE_OF_CASES:
            bench.suite(self.at, self.limit)

    def hold(self, bench: Bench, modules: Sequence[str], reporter: Reporter) -> bool:
        """Run the tests as long as more are needed; False if they do not use the modules."""
        try:
            cls = bench.binding()
        except LEAVING as error:
            if not is_failure(error):
                raise
            reporter.note("loading", f"{type(error).__name__}: {error}")
            return True
        # After the binding was loaded: it cannot test what it did not import.
        if modules and sys.modules.keys().isdisjoint(modules):
            return False
        program = bench.instance(self.at).program
        if self.at.suite in MADE_OF_CASES:
            self._cases(bench, Replayer(cls(program)), reporter)
        elif self.at.suite == "walks":
            self._walks(Replayer(cls(program)), reporter)
        else:
            budget = SuiteBudget(self.limit)
            reporter.check(
                "all", lambda: failure_of(run_whole(Replayer(cls(program)), self.at.suite, budget))
            )
        return True

    def _cases(self, bench: Bench, replayer: Replayer[Any], reporter: Reporter) -> None:
        suite = bench.suite(self.at, self.limit)
        # One runner, so that cases take their common beginning once. A mutant that breaks it makes the next
        # case take it again; that work is within the margin of `mutate.MORE_WORK`.
        runner = Runner(replayer, suite)
        cases = ((case.id, case) for case in suite.cases)
        reporter.check_each(cases, lambda case: _one_line(runner.run(case).divergence))

    def _walks(self, replayer: Replayer[Any], reporter: Reporter) -> None:
        seeds = range(self.walks.seed, self.walks.seed + self.walks.walks, PER_TEST)
        walks = ((f"seed {seed}", SuiteWalks(seed, PER_TEST, self.walks.steps)) for seed in seeds)
        reporter.check_each(walks, lambda some: failure_of(run_walks(replayer, some)))


def each_seed(seeds: range, fails: Callable[[int], str]) -> Callable[[Reporter], None]:
    """The tests of an `Outside`, one for each seed; `fails` returns why it fails, or nothing."""

    def run(reporter: Reporter) -> None:
        reporter.check_each(((f"seed {seed}", seed) for seed in seeds), fails)

    return run


class Outside(Struct, frozen=True):
    """Another check of the implementation; `about` are the modules that it runs."""

    name: str
    run: Callable[[Reporter], None]
    about: tuple[str, ...]

    def prepare(self, bench: Bench) -> None:
        """Nothing to compute beforehand."""

    def hold(self, bench: Bench, modules: Sequence[str], reporter: Reporter) -> bool:
        """Like `SuiteMember.hold`."""
        # By prefix: `about` names packages, and which of their modules such a check runs is unknown.
        if modules and not any(module.startswith(self.about) for module in modules):
            return False
        self.run(reporter)
        return True


class Member(Protocol):
    """Anything that has named tests, and can be run against an implementation."""

    @property
    def name(self) -> str:
        """Unique in a gate."""

    def prepare(self, bench: Bench) -> None:
        """Compute everything that does not depend on the implementation."""

    def hold(self, bench: Bench, modules: Sequence[str], reporter: Reporter) -> bool:
        """Run the tests as long as more are needed; False if they do not use the modules."""


def _one_line(divergence: Divergence | None) -> str:
    return (
        "" if divergence is None else f"{divergence.kind}: {divergence.step or 'start'} {divergence.reason}"
    )


def failure_of(result: SuiteResult) -> str:
    """The reason why a suite fails as a test; empty if it passes."""
    return _one_line(result.divergence) or result.vacuous


def is_failure(error: BaseException) -> bool:
    """Whether an exception may be the effect of a mutant on a test, and not an error in specchk."""
    return isinstance(error, BindingError) or is_implementations(error)


def load(path: Path) -> ModuleType:
    """Load a file as the module of its name, with its neighbours importable and patched."""
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    name = path.stem
    # Loaded once in each process; `forget` takes it out where it must be loaded with other patches.
    if name in sys.modules and getattr(sys.modules[name], "__file__", "") == str(path):
        return sys.modules[name]
    module = ModuleType(name)
    module.__file__ = str(path)
    sys.modules[name] = module
    try:
        run_file(path, module)
    except BaseException:  # half of a module is not there the next time either
        del sys.modules[name]
        raise
    return module


def binding_in(module: ModuleType) -> type[Binding[Any]]:
    """The one binding class that a module defines; `LookupError` for none or several."""
    return only_class(vars(module), Binding, module.__name__, str(module.__file__))


def members_of(folder: Path, bench: Bench) -> tuple[Member, ...]:
    """The members listed in a folder of mutants, or those that every binding has."""
    path = folder / "members.py"
    if path.exists():
        listed: tuple[Member, ...] = load(path).MEMBERS
        return listed
    cls = bench.binding()
    gate = [_member(at, cls) for at in cls.gate]
    walks = _member(At(suite="walks"), cls)
    return (*gate, *([] if any(one.name == walks.name for one in gate) else [walks]))


def _member(at: At, cls: type[Binding[Any]]) -> SuiteMember:
    label = label_of(at.model or cls.model or "", tuple(at.bounds.items())).strip()
    return SuiteMember(f"{at.suite} {label}", at)


def listed(folder: Path, name: str) -> tuple[Any, ...]:
    """A further list, by name, in the `members.py` of a folder; empty if there is none.

    `SELF_CHECKS` are further checks of the harness, names and functions of a bench that report errors,
    `TARGETS` modules of which mutants are generated, `WATCHED` further files that the members depend on.
    """
    path = folder / "members.py"
    return tuple(getattr(load(path), name, ())) if path.exists() else ()
