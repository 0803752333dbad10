"""A loaded spec: every declaration by name, own and inherited ones alike.

`Spec` is what loading makes of a file, its `extends` and its `import`s; `Facts` is what checking
finds out about its tree, keyed by node identity.  Both are read-only for later phases.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum, auto

from msgspec import Struct, field

from specchk.lang.check.types import Type
from specchk.lang.syntax import decls, tree
from specchk.lang.text.source import Source, Span


class Role(Enum):
    """How a file is used: run itself, imported for its types and definitions, or refined by another."""

    RUN = auto()
    LIBRARY = auto()
    REFINED = auto()


class Spec(Struct):
    """One namespace: a file with all that it extends; imported and refined files are attached by alias."""

    name: str
    source: Source
    role: Role = Role.RUN
    sources: list[Source] = field(default_factory=list)  # its own, and those of all that it extends
    sorts: dict[str, decls.Sort] = field(default_factory=dict)
    consts: dict[str, decls.Const] = field(default_factory=dict)
    assumes: list[decls.Assume] = field(default_factory=list)
    types: dict[str, decls.TypeDecl] = field(default_factory=dict)
    variables: dict[str, decls.Var] = field(default_factory=dict)
    inits: list[decls.Init] = field(default_factory=list)
    defs: dict[str, decls.Def] = field(default_factory=dict)
    actions: dict[str, decls.Action] = field(default_factory=dict)
    helpers: dict[str, decls.Helper] = field(default_factory=dict)
    properties: dict[str, decls.Property] = field(default_factory=dict)
    deadlock: list[decls.DeadlockOk] = field(default_factory=list)
    fair: list[decls.Fair] = field(default_factory=list)
    refines: list[decls.Refines] = field(default_factory=list)
    models: dict[str, decls.Model] = field(default_factory=dict)
    scenarios: dict[str, decls.Scenario] = field(default_factory=dict)
    views: list[decls.View] = field(default_factory=list)
    imports: dict[str, Spec] = field(default_factory=dict)
    refined: dict[str, Spec] = field(default_factory=dict)
    sort_types: dict[str, Type] = field(default_factory=dict)  # what sorts of a refined or imported spec are
    members: dict[str, tuple[str, int]] = field(default_factory=dict)  # enum member: type, index
    variants: dict[str, str] = field(default_factory=dict)  # constructor -> union type's name
    declared: dict[str, Span] = field(default_factory=dict)
    prefix: str = ""  # `log.` in front of the names of a file imported or refined as `log`

    def lookup(self, alias: str | None) -> Spec | None:
        """The namespace of a qualifier, or this one without a qualifier; None for an unknown qualifier."""
        return self if alias is None else self.imports.get(alias) or self.refined.get(alias)

    def qualified_hint(self, name: tree.Name) -> str | None:
        """How a name is written here that lacks only the imported file that declares it; else None."""
        files = [alias for alias, file in self.imports.items() if name.text in file.declared]
        if name.qualifier is not None or not files:
            return None
        return f"a name of an imported file is qualified: `{files[0]}.{name.text}`"

    def all_sources(self) -> Iterator[Source]:
        """The sources of this spec, and of all that it imports and refines."""
        yield from self.sources
        for other in (*self.imports.values(), *self.refined.values()):
            yield from other.all_sources()

    def has_state_for(self, user: Spec) -> bool:
        """Whether the variables and actions of this spec have a meaning in the context of `user`."""
        # A library brings no state, and the state of a refined spec is the mapping's: only its own text,
        # which is read under the mapping, names it.
        return self.role is Role.RUN or (self.role is Role.REFINED and self is user)

    def has_definitions_for(self, user: Spec) -> bool:
        """Whether `user` may call the definitions of this spec."""
        # A refined spec's definitions read its state, which only its own text names.
        return self.role is not Role.REFINED or self is user


class Ref(Struct, frozen=True):
    """The meaning of a name: `kind` with the declared `name` in `home`.

    Kinds: `local`, `operator`, `variable`, `constant`, `def`, `member`, `constructor`, `typeset`, `builtin`,
    `property`, `element` (of a sort, in models and scenarios), `first`, `action` (of `enabled`).
    """

    kind: str
    name: str
    home: Spec | None = None


class Facts(Struct):
    """Facts about tree nodes, by `id(node)`; the trees are kept alive by their `Spec`."""

    types: dict[int, Type] = field(default_factory=dict)
    refs: dict[int, Ref] = field(default_factory=dict)
    declared: dict[int, Type] = field(default_factory=dict)  # of TypeExpr nodes
    lifted: dict[int, Type] = field(default_factory=dict)  # of elements of sorts that are values of a union
    binders: dict[int, Type] = field(default_factory=dict)  # element type of Binder nodes
    kept: list[tree.Node] = field(default_factory=list)  # trees that no spec keeps alive

    def type_of(self, node: tree.Expr) -> Type:
        """The type of a checked expression."""
        return self.types[id(node)]

    def ref(self, node: tree.Node) -> Ref:
        """The meaning of a resolved name or call."""
        return self.refs[id(node)]
