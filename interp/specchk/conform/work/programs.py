"""Programs of models, kept in the user's cache directory between runs (`kept`).

A program depends on the texts of its spec with their paths, the model and the overrides, and the sources of
the rooms that make it.  Reading one takes a quarter of the time of making it.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from pathlib import Path

from specchk import kept
from specchk.compile.instantiate import Instance, instance_of, instantiate, instantiate_steps
from specchk.ir.program import Program
from specchk.lang.check.spec import Spec
from specchk.lang.frontend import CheckedSpec
from specchk.lang.syntax.kept_trees import LEAST, PARSER

ROOMS = ("lang", "ir", "meaning", "compile", "conform/work")  # whose sources decide what a program is
Maker = Callable[[CheckedSpec, str | None, Mapping[str, str]], Instance]


def whole_instance(checked: CheckedSpec, model: str | None, overrides: Mapping[str, str]) -> Instance:
    """As `instantiate`, with the program that was kept where there is one."""
    return _instance(instantiate, checked, model, overrides)


def steps_instance(checked: CheckedSpec, model: str | None, overrides: Mapping[str, str]) -> Instance:
    """As `instantiate_steps`, with the program that was kept where there is one."""
    return _instance(instantiate_steps, checked, model, overrides)


def _instance(
    maker: Maker, checked: CheckedSpec, model: str | None, overrides: Mapping[str, str]
) -> Instance:
    place = _place(checked.spec, (maker.__name__, model, sorted(overrides.items())))
    data = kept.read(place)
    if data is None:
        instance = maker(checked, model, overrides)
        kept.write(place, pickle.dumps(instance.program, protocol=pickle.HIGHEST_PROTOCOL))
        return instance
    # As for compiled code, whoever may write into this user's cache may run code as this user.
    program: Program = pickle.loads(data)  # noqa: S301
    return instance_of(checked, model, overrides, program, has_properties=maker is instantiate)


def _place(spec: Spec, about: object) -> Path | None:
    """None for a short text, of which a program is made as fast as a file is read."""
    texts = [(source.path, source.text) for source in spec.all_sources()]
    if sum(len(text) for _, text in texts) < LEAST:
        return None
    return kept.place("programs", kept.name_of(kept.sources(*ROOMS), about, texts, PARSER))
