"""A divergence as a test for pytest: its path, which the implementation takes again whenever the test is run.

    def test_the_implementation_follows_the_spec() -> None:
        follow(BINDING, "two", {}, [
            ("prepare", "p1", 0),
            ("crash", "p1", 0),
        ])

The test fails as long as the implementation diverges and passes once it conforms to the spec, so it can be
kept.  It has the path and not the spec's states: it holds the implementation to the spec as it is then.

Not here: how a path is taken (`replay.runner`); a frozen path is a suite of one case.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from os.path import relpath
from pathlib import Path

from msgspec.structs import replace

from specchk.conform.contract.binding import At
from specchk.conform.contract.hangs import contained
from specchk.conform.contract.load import load_binding
from specchk.conform.covers.cases import CaseStep, Suite, SuiteCase, case_id
from specchk.conform.gate.choices import read_step, written_step
from specchk.conform.gate.tiers import Part, parts_of
from specchk.conform.replay.divergence import WORDS, differences, step_text, wanted
from specchk.conform.replay.place import Divergence
from specchk.conform.replay.replay import Replayer
from specchk.conform.replay.runner import run_suite
from specchk.conform.report.suite import render
from specchk.lang.frontend import check
from specchk.lang.text.visible import visible
from specchk.meaning.values import State


class CannotFreeze(Exception):
    """A divergence that no path alone repeats; the text gives the reason."""


def follow(
    path: Path, model: str, bounds: Mapping[str, str], steps: Sequence[tuple[str | int, ...]], start: int = 0
) -> None:
    """Take a path with the implementation of the binding in a file; `AssertionError` with the divergence.

    A step is an action, its arguments as the spec writes them, and which of its successors (ascending) is
    meant; `start` is which of the initial states.  Where the implementation takes another one that the spec
    allows, the path ends without a failure.
    """
    __tracebackhide__ = True  # pytest shows the report alone
    with contained():
        cls = load_binding(path)
        checked = check(str(path.parent / cls.spec))
        (part,) = parts_of(cls, checked, [At(model, bounds)])
        taken = tuple(map(read_step, steps))
        case = SuiteCase(case_id(part.label, start, taken), taken, ((),) * len(taken), start)
        suite = Suite("frozen", model, part.bounds, (case,), (), (), (), 0, 0, complete=False)
        result = run_suite(Replayer(part.binding), suite)
    if result.divergence is not None:
        # The path is a case of no suite, so nothing repeats it but this test.
        alone = replace(result, suite="frozen path", coverage=None, failed=None)
        raise AssertionError(visible(render(part, alone)))


def frozen(part: Part, path: Path, divergence: Divergence, target: Path) -> str:
    """The text of a test file at `target`, for the binding in the file `path`; raises `CannotFreeze`."""
    if divergence.kind == "fault":
        raise CannotFreeze("the fault struck inside a step, which only the suite `faults` arranges")
    replayer = Replayer(part.binding)
    start = replayer.spec.initial.index(divergence.trace.initial)
    # Relative, so that the test still finds the binding in another checkout.
    beside = relpath(path.resolve(), target.resolve().parent).replace("\\", "/")
    first = f"BINDING, {part.instance.program.model!r}, {dict(part.bounds)!r}, ["
    lines = [f"        {written_step(step)!r}," for step in _steps(replayer, divergence)]
    last = f"    ], start={start})" if start else "    ])"
    return "\n".join([
        f'"""{_head(part, divergence)}\n"""', "", "from pathlib import Path", "",
        "from specchk.conform.frozen import follow", "",
        f"BINDING = Path(__file__).resolve().parent / {beside!r}", "", "",
        "def test_the_implementation_follows_the_spec() -> None:",
        '    """Take the path on which the implementation diverged."""',
        f"    follow({first}", *lines, last, "",
    ])  # fmt: skip


def _steps(replayer: Replayer[object], divergence: Divergence) -> Iterator[CaseStep]:
    """The steps of the path, and the one that diverged if the spec has it: a runner tries all others."""
    spec, before = replayer.spec, divergence.trace.initial
    for step in divergence.trace.steps:
        allowed: list[State] = sorted(spec.allowed(before, spec.instance(step)))
        yield CaseStep(step.action, step.args, allowed.index(step.state))
        before = step.state
    last = divergence.step
    if last is not None and spec.allowed(before, spec.instance(last)):
        yield CaseStep(last.action, last.args)


def _head(part: Part, divergence: Divergence) -> str:
    program = part.instance.program
    lines = [
        f"Frozen by specchk: {WORDS[divergence.kind]}.",
        "",
        f"{program.spec}, model {program.model}, on {type(part.binding).__name__}.  "
        f"{step_text(divergence)}".rstrip(),
        *([divergence.reason] if divergence.kind != "state" and divergence.reason else []),
        *(
            f"{change.path}: the spec has {change.before}, the implementation {change.after}"
            for change in differences(program, divergence, wanted(program, divergence))
        ),
    ]
    return "\n".join(line.replace("\\", "\\\\").replace('"""', "'''") for line in lines)
