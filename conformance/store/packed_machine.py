"""The binding's system under test: a machine, packed while it is not used, and an outline of it."""

from __future__ import annotations

from dataclasses import dataclass

from store_machine import Machine, unpacked


@dataclass(frozen=True, slots=True)
class Outline:
    """The data that decide whether a call is possible; of a running process, its log's end and last epoch."""

    is_up: bool
    log_end: int = 0
    last_epoch: int = -1

    @classmethod
    def of(cls, machine: Machine) -> Outline:
        """Return the outline of a machine."""
        if machine.directory is None:
            return cls(False)
        epochs = machine.log.epochs
        return cls(True, machine.log.log_end, epochs[-1].epoch if epochs else -1)


class PackedMachine:
    """A machine, unpacked when it is first used: most of the tried calls are not possible."""

    __slots__ = ("_machine", "_outline", "_packed")

    def __init__(self, machine: Machine | None, packed: bytes = b"", outline: Outline | None = None) -> None:
        self._machine = machine
        self._packed = packed
        self._outline = outline

    @property
    def machine(self) -> Machine:
        """The machine, for calls."""
        if self._machine is None:
            self._machine = unpacked(self._packed)
        return self._machine

    @property
    def outline(self) -> Outline:
        """The facts known without unpacking it."""
        return (
            Outline.of(self.machine) if self._machine is not None or self._outline is None else self._outline
        )

    def become(self, machine: Machine) -> None:
        """Hold another machine from now on."""
        self._machine = machine
        self._outline = None

    def copy(self) -> PackedMachine:
        """Return an independent copy, packed."""
        packed = self._packed if self._machine is None else self._machine.packed()
        return PackedMachine(None, packed, self.outline)
