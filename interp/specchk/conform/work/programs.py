"""Programs of models, kept in the user's cache directory between runs (`kept`).

A program depends on the texts of its spec, the model and the overrides, and the sources of the rooms that
compute it.  The paths of the texts do not matter: a place names a text by its number, and is read in the
spec at hand.  So an executor, which has copies in its own folder, finds the kept programs.
Reading one takes a quarter of the time of computing it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from specchk import kept
from specchk.compile.instantiate import Instance, instance_of, instantiate, instantiate_steps
from specchk.ir.program import Program
from specchk.lang.frontend import CheckedSpec
from specchk.lang.syntax.kept_trees import LEAST, PARSER, read_with, written
from specchk.lang.text.source import Source

ROOMS = ("lang", "ir", "meaning", "compile", "conform/work")  # whose sources determine a program
Maker = Callable[[CheckedSpec, str | None, Mapping[str, str]], Instance]


def whole_instance(checked: CheckedSpec, model: str | None, overrides: Mapping[str, str]) -> Instance:
    """As `instantiate`, with the cached program if there is one."""
    return _instance(instantiate, checked, model, overrides)


def steps_instance(checked: CheckedSpec, model: str | None, overrides: Mapping[str, str]) -> Instance:
    """As `instantiate_steps`, with the cached program if there is one."""
    return _instance(instantiate_steps, checked, model, overrides)


def _instance(
    maker: Maker, checked: CheckedSpec, model: str | None, overrides: Mapping[str, str]
) -> Instance:
    sources = tuple(checked.spec.all_sources())
    place = _place(sources, (maker.__name__, model, sorted(overrides.items())))
    data = kept.read(place)
    if data is None:
        instance = maker(checked, model, overrides)
        kept.write(place, written(instance.program, sources))
        return instance
    program: Program = replace(read_with(data, sources), path=checked.spec.source.path)
    return instance_of(checked, model, overrides, program, has_properties=maker is instantiate)


def _place(sources: Sequence[Source], about: object) -> Path | None:
    """The cache path; None for a short text, whose program is built as fast as a file is read."""
    texts = [source.text for source in sources]
    if sum(map(len, texts)) < LEAST:
        return None
    return kept.place("programs", kept.name_of(kept.sources(*ROOMS), about, texts, PARSER))
