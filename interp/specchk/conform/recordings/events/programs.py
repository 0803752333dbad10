"""Programs without properties, kept in the user's cache directory between runs (`kept`).

A program depends on the texts of its spec with their paths, the model and the overrides, and the sources of
the rooms that make it.  Reading one takes a quarter of the time of making it.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from pathlib import Path

from specchk import kept
from specchk.compile.instantiate import Instance, instance_of, instantiate_steps
from specchk.ir.program import Program
from specchk.lang.check.spec import Spec
from specchk.lang.frontend import CheckedSpec
from specchk.lang.syntax.kept_trees import LEAST, PARSER

ROOMS = (
    "lang",
    "ir",
    "meaning",
    "compile",
    "conform/recordings/events",
)  # whose sources decide what a program is


def steps_instance(checked: CheckedSpec, model: str | None, overrides: Mapping[str, str]) -> Instance:
    """As `instantiate_steps`, with the program that was kept where there is one."""
    place = _place(checked.spec, model, overrides)
    data = kept.read(place)
    if data is None:
        instance = instantiate_steps(checked, model, overrides)
        kept.write(place, pickle.dumps(instance.program, protocol=pickle.HIGHEST_PROTOCOL))
        return instance
    # As for compiled code, whoever may write into this user's cache may run code as this user.
    program: Program = pickle.loads(data)  # noqa: S301
    return instance_of(checked, model, overrides, program)


def _place(spec: Spec, model: str | None, overrides: Mapping[str, str]) -> Path | None:
    """None for a short text, of which a program is made as fast as a file is read."""
    texts = [(source.path, source.text) for source in spec.all_sources()]
    if sum(len(text) for _, text in texts) < LEAST:
        return None
    about = model, sorted(overrides.items()), texts, PARSER
    return kept.place("programs", kept.name_of(kept.sources(*ROOMS), about))
