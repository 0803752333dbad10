"""The binding's system: a machine, packed as long as nothing is done with it, and an outline of it."""

from __future__ import annotations

from dataclasses import dataclass

from store_machine import Machine, unpacked


@dataclass(frozen=True, slots=True)
class Outline:
    """What decides whether a call is possible; of a process that runs, its log's end and last epoch."""

    is_up: bool
    log_end: int = 0
    last_epoch: int = -1

    @classmethod
    def of(cls, machine: Machine) -> Outline:
        """Look at a machine."""
        if machine.directory is None:
            return cls(False)
        epochs = machine.log.epochs
        return cls(True, machine.log.log_end, epochs[-1].epoch if epochs else -1)


class PackedMachine:
    """A machine, unpacked when something is done with it: most of what is tried is not possible."""

    __slots__ = ("_machine", "_outline", "_packed")

    def __init__(self, machine: Machine | None, packed: bytes = b"", outline: Outline | None = None) -> None:
        self._machine = machine
        self._packed = packed
        self._outline = outline

    @property
    def machine(self) -> Machine:
        """The machine, to run on."""
        if self._machine is None:
            self._machine = unpacked(self._packed)
        return self._machine

    @property
    def outline(self) -> Outline:
        """What is known without unpacking it."""
        return (
            Outline.of(self.machine) if self._machine is not None or self._outline is None else self._outline
        )

    def become(self, machine: Machine) -> None:
        """Have another machine from now on."""
        self._machine = machine
        self._outline = None

    def copy(self) -> PackedMachine:
        """Return an independent copy, packed."""
        packed = self._packed if self._machine is None else self._machine.packed()
        return PackedMachine(None, packed, self.outline)
