"""From files to a `Spec`: reading, imports, `extends`, and one table of declared names.

Every way in which a file cannot be read is a diagnostic, and reading is bounded (lang/text/source.py).
A file met twice through `extends` counts once; a cycle of files is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

from msgspec import Struct, field
from msgspec.structs import replace

from specchk.lang.check.spec import Role, Spec
from specchk.lang.syntax import decls, tree
from specchk.lang.syntax.reading import parse, parse_once
from specchk.lang.text.diagnostics import Report, nearest
from specchk.lang.text.source import MAX_BYTES, MAX_LINE, Source, Span

_WORDS = """
    spec import extends sort const type var init def action invariant reachable liveness constraint model
    scenario forall exists choose filter if then else let in not and or implies iff leadsto eventually
    always true false none match with where require any either when skip bool int nat set seq bag enum is
    union intersect subset for deadlock
"""
RESERVED = frozenset(_WORDS.split())


_NEEDS = re.compile(r"^\s*(?:extends|import|refines)\s+([\w.]+)", re.MULTILINE)


def needed_files(file: Path, text: str) -> Iterator[tuple[str, Path]]:
    """The names that a text extends, imports or refines, each with its file; also of a text with errors."""
    for match in _NEEDS.finditer(text):
        yield match[1], file_of(match[1].split("."), file)


def file_of(parts: Sequence[str], base: Path) -> Path:
    """The file that a dotted name denotes in the file `base`."""
    return base.parent.joinpath(*parts[:-1], f"{parts[-1]}.spec")


class SpecFiles:
    """Where one run of the loader gets texts and trees from; an editor has others than those on the disk."""

    def __init__(self) -> None:
        self._met: set[Source] = set()

    def read(self, path: Path, shown: str, report: Report) -> Source | None:
        """The text of a file, or None with a diagnostic."""
        return read(path, shown, report)

    def tree(self, source: Source, report: Report) -> decls.Module:
        """The tree of a text; a repeated text has one of its own, since facts are kept by tree node."""
        if source in self._met:
            return parse(source, report)
        self._met.add(source)
        return parse_once(source, report)


class _Loading(Struct):
    """One run of the loader: its report, its files, and the stack of those being read."""

    report: Report
    files: SpecFiles
    stack: list[Path] = field(default_factory=list)

    def module(self, path: Path, shown: str, text: str | None = None) -> decls.Module | None:
        """The tree of a file, or of a text in its place."""
        given = Source(shown, text) if text is not None else None
        source = given or self.files.read(path, shown, self.report)
        if source is None or not fits(source, self.report):
            return None
        return self.files.tree(source, self.report)


def load(path: str, report: Report, text: str | None = None, files: SpecFiles | None = None) -> Spec | None:
    """Load a spec file with all files that it extends and imports; `text` replaces the file's content."""
    return _load(Path(path), path, _Loading(report, files or SpecFiles()), text)


def _load(
    path: Path, shown: str, loading: _Loading, text: str | None = None, role: Role = Role.RUN
) -> Spec | None:  # fmt: skip
    module = loading.module(path, shown, text)
    if module is None:
        return None
    name = next((d.name for d in module.decls if isinstance(d, decls.Header)), path.stem)
    spec = Spec(name, module.span.source, role)
    _include(spec, module, path, loading, set())
    return spec


def read(path: Path, shown: str, report: Report) -> Source | None:
    """The text of a file, or None with a diagnostic that gives the reason."""
    whole = Span(Source(shown, ""), 0, 0)
    try:
        # Before the attempt to read: an `OSError` names neither the file that was meant nor what to do with a
        # folder.
        if path.is_dir():
            report.add("S001", whole, f"{shown} is a directory", "name a .spec file in it")
            return None
        if not path.exists():
            report.add("S001", whole, f"there is no file {shown}", _similar_file(path))
            return None
        if not path.is_file():  # a pipe, of which a second reader would find nothing
            hint = "a text that is in no file is read from standard input: `... | specchk run -`"
            report.add("S001", whole, f"{shown} is not a regular file", hint)
            return None
        if path.stat().st_size > MAX_BYTES:
            report.add("S003", whole, f"{shown} is larger than {MAX_BYTES} bytes", "a spec is a small text")
            return None
        data = path.read_bytes()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        report.add("S001", whole, f"{shown} cannot be read: {reason}")
        return None
    return _decode(data, shown, report)


def _similar_file(path: Path) -> str | None:
    try:
        return nearest(path.name, (p.name for p in path.parent.glob("*.spec")))
    except OSError:
        return None


def _decode(data: bytes, shown: str, report: Report) -> Source | None:
    try:
        # Some editors begin a file with a byte order mark; offsets are those of the text without it.
        return Source(shown, data.decode("utf-8-sig").replace("\r\n", "\n"))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        source = Source(shown, "\n" * (line - 1))
        report.add(
            "S002", Span(source, line - 1, line - 1), f"{shown} is not UTF-8 text (byte {error.start})",
            "name a .spec file; one in another encoding is converted with `iconv -t UTF-8`",
        )  # fmt: skip
        return None


def fits(source: Source, report: Report) -> bool:
    """Whether a text is small enough to be processed; otherwise adds a diagnostic."""
    if len(source.text) > MAX_BYTES:
        report.add("S003", Span(source, 0, 0), f"{source.path} is larger than {MAX_BYTES} bytes",
                   "a spec is a small text")  # fmt: skip
        return False
    for number, start in enumerate(source.line_starts, 1):
        if len(source.line(number)) > MAX_LINE:
            report.add("S004", Span(source, start + MAX_LINE, start + MAX_LINE + 1),
                       f"this line is longer than {MAX_LINE} characters", "split it")  # fmt: skip
            return False
    return True


def _include(spec: Spec, module: decls.Module, path: Path, loading: _Loading, seen: set[Path]) -> None:
    """Add a file's declarations to `spec`, after those of the files that it extends."""
    seen.add(path.resolve())
    loading.stack.append(path.resolve())
    spec.sources.append(module.span.source)
    own = module.span.source is spec.source
    # Bases first, wherever their lines are: of two equal names the base's is the first declared, and the
    # error is in the file that can choose another.
    for decl in module.decls:
        if isinstance(decl, decls.Extends):
            _extend(spec, decl, path, loading, seen)
    # Sorts first: of a union's variants, these decide which are the elements of a sort.
    for decl in sorted(module.decls, key=lambda decl: not isinstance(decl, decls.Sort)):
        if isinstance(decl, decls.Import):
            if _attach(spec, decl, path, loading, Role.LIBRARY):
                _give(spec.imports[decl.alias], decl, loading.report)
        elif isinstance(decl, decls.Refines):
            # That an imported or refined file refines another is a claim of that file.
            if spec.role is Role.RUN and _attach(spec, decl, path, loading, Role.REFINED):
                spec.refines.append(decl)
        elif own or not isinstance(decl, decls.Model | decls.Scenario):
            _declare(spec, decl, loading.report)
    loading.stack.pop()


def _find(parts: tuple[str, ...], base: Path, span: Span, loading: _Loading) -> Path | None:
    path = file_of(parts, base)
    if not path.is_file():
        hint = _similar_file(path)
        loading.report.add("S006", span, f"there is no file {path} for `{'.'.join(parts)}`", hint)
        return None
    # Resolved, since one file may be reached by several paths and by links; of a link to itself that fails.
    if path.resolve() in loading.stack:
        names = " -> ".join([*(p.name for p in loading.stack), path.name])
        loading.report.add("S005", span, f"these files need each other: {names}",
                           "move the common part into a third file")  # fmt: skip
        return None
    return path


def _extend(spec: Spec, decl: decls.Extends, base: Path, loading: _Loading, seen: set[Path]) -> None:
    path = _find(decl.path, base, decl.span, loading)
    if path is None or path.resolve() in seen:
        return
    module = loading.module(path, str(path))
    if module is not None:
        _include(spec, module, path, loading, seen)


def _attach(
    spec: Spec, decl: decls.Import | decls.Refines, base: Path, loading: _Loading, role: Role
) -> bool:  # fmt: skip
    """Load an imported or refined file as a namespace of its own; returns whether that succeeded."""
    path = _find(decl.path, base, decl.span, loading)
    if path is None:
        return False
    other = _load(path, str(path), loading, role=role)
    if other is None or not _claim(spec, decl.alias, decl.span.word(decl.alias), loading.report):
        return False
    for alias in other.imports:
        loading.report.add("S007", decl.span, f"{path} itself imports `{alias}`: names stay one level deep",
                           "import both files here, or let one extend the other")  # fmt: skip
    other.prefix = f"{decl.alias}."
    (spec.imports if role is Role.LIBRARY else spec.refined)[decl.alias] = other
    return True


def _give(library: Spec, decl: decls.Import, report: Report) -> None:
    """Record the values that an import gives to a library's constants and sorts in their declarations."""
    for binding in decl.given:
        name, place = binding.name.full, binding.name.span
        sort, const = library.sorts.get(name), library.consts.get(name)
        if sort is None and const is None:
            known = [*library.consts, *library.sorts]
            report.add("S201", place, f"`{library.name}` has no constant or sort `{name}`",
                       nearest(name, known) or f"it has {', '.join(known) or 'none'}")  # fmt: skip
        elif (sort and sort.given) or (const and const.given):
            report.add("S202", place, f"`{name}` is given twice", "remove one")
        elif sort is not None:
            library.sorts[name] = replace(sort, given=binding)
        elif const is not None:
            library.consts[name] = replace(const, given=binding)


def _claim(spec: Spec, name: str, span: Span, report: Report) -> bool:
    if name in RESERVED:
        message = f"`{name}` is a word of the language"
        report.add("S105", span, message, f"choose another name, e.g. `{name}_`")
        return False
    if name in spec.declared:
        _declared_twice(name, span, spec.declared[name], report)
        return False
    spec.declared[name] = span
    return True


def _declared_twice(name: str, span: Span, first: Span, report: Report) -> None:
    message = f"`{name}` is declared twice"
    report.add("S202", span, message, "rename one of them", [(first, "first declared here")])


def _declare(spec: Spec, decl: decls.Decl, report: Report) -> None:
    tables: dict[type, Any] = {
        decls.Init: spec.inits, decls.Assume: spec.assumes, decls.DeadlockOk: spec.deadlock,
        decls.Fair: spec.fair, decls.View: spec.views,
        decls.Sort: spec.sorts, decls.Const: spec.consts, decls.TypeDecl: spec.types,
        decls.Var: spec.variables, decls.Def: spec.defs, decls.Action: spec.actions,
        decls.Helper: spec.helpers, decls.Property: spec.properties, decls.Model: spec.models,
        decls.Scenario: spec.scenarios,
    }  # fmt: skip
    if isinstance(decl, decls.Header | decls.Import | decls.Extends | decls.Refines):
        return
    table = tables[type(decl)]
    if isinstance(table, list):
        table.append(decl)
    else:
        _declare_named(spec, cast("decls.Named", decl), table, report)


def _declare_named(spec: Spec, decl: decls.Named, table: dict[str, Any], report: Report) -> None:
    place = decl.span.word(decl.name)
    if isinstance(decl, decls.Model | decls.Scenario):
        # Not claimed: only `--model`, `on` and `extends` name one, so it may share a name with a variable.
        if decl.name in table:
            _declared_twice(decl.name, place, table[decl.name].span.word(decl.name), report)
            return
    elif not _claim(spec, decl.name, place, report):
        return
    table[decl.name] = decl
    if isinstance(decl, decls.TypeDecl):
        _declare_parts(spec, decl, report)


def _declare_parts(spec: Spec, decl: decls.TypeDecl, report: Report) -> None:
    if isinstance(decl.type, tree.EnumType):
        rest = decl.type.span
        for index, member in enumerate(decl.type.members):
            span = rest.word(member)
            rest = Span(rest.source, span.end, rest.end)
            if _claim(spec, member, span, report):
                spec.members[member] = (decl.name, index)
    elif isinstance(decl.type, tree.UnionType):
        for variant in decl.type.variants:
            if variant.name in spec.sorts and not variant.fields:
                continue
            if _claim(spec, variant.name, variant.span.word(variant.name), report):
                spec.variants[variant.name] = decl.name
