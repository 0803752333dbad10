"""The functions of an implementation that each action of a spec runs, with their texts.

While a suite runs, every call into the user's files is noted: under the action whose handler it
happens in, or under none (starting, projecting, keeping).  A function's text is hashed as a syntax
tree, so layout and comments do not count; what stands outside of functions (imports, constants,
classes' fields, decorators) is one text of its own for each file, the rest.

Invariants: a nested function belongs to the outermost one around it; a function that is defined
twice in a file has both texts.  Not here: what follows from a change (`since`).
"""

from __future__ import annotations

import _posixsubprocess
import ast
import hashlib
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from msgspec import Struct, field

from specchk.conform.contract.binding import Binding
from specchk.conform.work.sources import is_theirs

REST = ""  # the name of what stands outside of functions, and of what runs outside of actions
DIGITS = 16
Function = tuple[str, str]  # the file's shown path, the function's qualified name
ELSEWHERE: Function = ("another process", REST)
LASTING = "values that outlive cases"  # the file of those that cases changed
_PROCESSES = (os.fork, os.forkpty, os.posix_spawn, os.posix_spawnp, os.system, _posixsubprocess.fork_exec)
Texts = Mapping[Function, str]


def texts(sources: Mapping[str, str]) -> dict[Function, str]:
    """The hash of each function of some files, and of the rest of each file; `SyntaxError` if invalid."""
    hashes: dict[Function, str] = {}
    for name, text in sources.items():
        tree = ast.parse(text)
        bodies: dict[str, list[str]] = {}
        for qualified, node in _functions(tree, ()):
            # Definitions under one name (in two branches of an `if`, or a property and its setter) count
            # together.
            bodies.setdefault(qualified, []).append(ast.dump(node))
        for qualified, dumps in bodies.items():
            hashes[name, qualified] = _short("\n".join(dumps))
        # Positions are not in a dump, so layout and comments are no change.  After the functions, since it
        # takes their bodies out of the tree.
        hashes[name, REST] = _short(ast.dump(_Hollow().visit(tree)))
    return hashes


def _functions(node: ast.AST, outer: tuple[str, ...]) -> Iterator[tuple[str, ast.AST]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            # Nested functions are not gone into: they are a part of the text of the outermost one.
            yield ".".join((*outer, child.name)), child
        elif isinstance(child, ast.ClassDef):
            yield from _functions(child, (*outer, child.name))
        else:
            yield from _functions(child, outer)


class _Hollow(ast.NodeTransformer):
    """Removes the bodies of functions; code that runs at definition time is kept.

    So does the body of one with a cache, which need not be called where its value is used.
    """

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        """Keep the name, the decorators and the defaults."""
        node.returns = None
        if not any("cache" in ast.unparse(decorator) for decorator in node.decorator_list):
            node.body = []
        return node

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815 - the name is `ast`'s


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]


class CallTracer(Struct):
    """Records the code that runs, by action; `within` is the action of the running handler."""

    ran: dict[str, set[CodeType]] = field(default_factory=dict)
    within: str = REST
    thread: int = 0  # that runs the handlers
    is_split: bool = False  # another process was started, whose calls are not seen
    importing: int = 0  # modules whose code is running

    def note(self, frame: FrameType, event: str, arg: object) -> None:
        """Called by the interpreter at each call and return."""
        # A profile function and no trace function: it is called once for each call, not for each line.
        is_module = frame.f_code.co_name == "<module>"
        if event == "call":
            self.importing += is_module
            # Another thread may do any action's work, whichever handler is running: that is the rest.  So may
            # what an import makes, which runs once, in the first action that needs it.
            is_own = threading.get_ident() == self.thread and not self.importing
            within = self.within if is_own else REST
            self.ran.setdefault(within, set()).add(frame.f_code)
        elif event == "return":
            self.importing -= is_module
        elif event == "c_call" and arg in _PROCESSES:
            self.is_split = True

    @contextmanager
    def running(self) -> Iterator[None]:
        """Note the calls inside the block, in this thread and in threads started there."""
        before, of_threads = sys.getprofile(), threading.getprofile()
        self.thread = threading.get_ident()
        threading.setprofile(self.note)
        sys.setprofile(self.note)
        try:
            yield
        finally:
            sys.setprofile(before)
            threading.setprofile(of_threads)

    def functions(self, names: Mapping[str, str]) -> dict[str, frozenset[Function]]:
        """The functions that ran, by action; `names` maps the path of each file to its shown path.

        Functions of files without a name are under that of the file's path.
        """
        # Of copies: threads that the implementation left behind may still add calls.
        by_action: dict[str, frozenset[Function]] = {
            action: frozenset(function for code in list(codes) for function in _function(code, names))
            for action, codes in list(self.ran.items())
        }
        # As of a file that nobody has, so that `since` refuses to judge.
        if self.is_split:
            by_action[REST] = by_action.get(REST, frozenset()) | {ELSEWHERE}
        return by_action


def _function(code: CodeType, names: Mapping[str, str]) -> Iterator[Function]:
    if code.co_filename.startswith("<"):  # made of a class's fields, which are in the rest
        return
    path = Path(code.co_filename).resolve()
    known = names.get(str(path))
    # A file of the user's that the binding does not import is noted by its path, so that `since` can refuse
    # to judge.
    if known is not None or is_theirs(path):
        yield known or str(path), code.co_qualname.split(".<locals>")[0]


def attributed(binding: Binding[Any], tracer: CallTracer) -> Binding[Any]:
    """The binding, with handlers that report their action to the tracer; the outermost one counts."""
    # On the instance and not on the class, which bindings of other parts, with tracers of their own, share.
    for bound in type(binding).actions():
        setattr(binding, bound.method, _traced(getattr(binding, bound.method), bound.action, tracer))
    return binding


def _traced(handler: Callable[..., Any], action: str, tracer: CallTracer) -> Callable[..., Any]:
    @wraps(handler)
    def traced(*args: Any) -> Any:
        if tracer.within != REST:
            # A handler that calls another one is still in the outer action, whose case it is.
            return handler(*args)
        tracer.within = action
        try:
            return handler(*args)
        finally:
            tracer.within = REST

    return traced


def actions_of(calls: Mapping[str, Sequence[Function]], functions: frozenset[Function]) -> frozenset[str]:
    """The actions (and `REST`) that run one of some functions."""
    return frozenset(action for action, ran in calls.items() if not functions.isdisjoint(ran))
