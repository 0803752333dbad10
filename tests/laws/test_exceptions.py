"""Exceptions leave processes: each is recreated by the parent, or the pool ends with it."""

from __future__ import annotations

import importlib
import pickle
import pkgutil
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

import pytest

import replog
import specchk
from specchk.conform.contract.binding import Mistake
from specchk.conform.replay.place import Divergence
from specchk.explore.scenario import ScenarioFailure
from specchk.ir.nodes import Const
from specchk.ir.program import Property
from specchk.ir.types import BOOL
from specchk.lang.text.diagnostics import Diagnostic
from specchk.lang.text.source import Source, Span
from specchk.meaning.explain import Blame
from specchk.meaning.undefined import Undefined
from specchk.search.verdict import Trace

SPAN = Span(Source("a.spec", "spec a\n"), 0, 4)
BLAME = Blame(SPAN, "x", ())

# The arguments of all that take others than texts.
ARGUMENTS: Mapping[str, tuple[Any, ...]] = MappingProxyType({
    "BadLine": ("a.jsonl", 3),
    "BindingError": ((Mistake("a", "b"),),),
    "Diverged": (Divergence("state", Trace((1,), ()), None, "", "why"),),
    "DivergedBeyond": (Divergence("outside", Trace((1,), ()), None, "", "why"), {"n": 3}),
    "Faulty": (1, (2,), Undefined(SPAN, "why")),
    "ImplementationFailure": ("died", "why"),
    "LayoutError": ("S103", 1, 2, "a", "b"),
    "Lost": ("a", 3),
    "NoAnswer": (Property("invariant", "p", Const(BOOL, SPAN, True), 0, SPAN), Undefined(SPAN, "why")),
    "NoTruth": (((1,), (2,)), BLAME),
    "NotAValue": ("a", "b"),
    "RefusedError": ("why", b"frame"),
    "RefusedTopicError": (41, "why"),
    "SpecError": ([Diagnostic("S103", "a", SPAN, "b"), Diagnostic("S104", "c", SPAN, "d")],),
    "TooDeep": (SPAN,),
    "Undefined": (SPAN, "why"),
    "Unencodable": (SPAN, "why"),
    "Unsupported": ("why", SPAN),
    "ViolationError": ("one-leader", "why"),
    "_Failed": (ScenarioFailure(SPAN, "a", BLAME, None),),
    "_Spurious": ("a",),
})  # fmt: skip


def exceptions_of(package: Any) -> Iterator[type[BaseException]]:
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if not module.name.endswith("__main__"):
            for member in vars(importlib.import_module(module.name)).values():
                is_own = isinstance(member, type) and member.__module__ == module.name
                if is_own and issubclass(member, BaseException):
                    yield member


EXCEPTIONS = [*exceptions_of(specchk), *exceptions_of(replog)]


@pytest.mark.parametrize("kind", EXCEPTIONS, ids=lambda kind: kind.__qualname__)
def test_every_exception_goes_from_process_to_process(kind: type[BaseException]) -> None:
    """Pickled and recreated, it has the same text and the same attributes."""
    assert ("__init__" in vars(kind)) == (kind.__name__ in ARGUMENTS)
    error = kind(*ARGUMENTS.get(kind.__name__, ("why",)))
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind
    assert str(again) == str(error)
    # By their texts: exceptions among them are equal to themselves alone.
    assert repr(vars(again)) == repr(vars(error))


def test_the_exceptions_are_found() -> None:
    """Those that processes are known to pass on are among them."""
    assert {"Faulty", "Unencodable", "Diverged", "StoreError"} <= {kind.__name__ for kind in EXCEPTIONS}
