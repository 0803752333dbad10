"""A participant that votes before its vote is on disk: what docs/reading-a-divergence.md is about."""

from typing import Any

from two_phase import Log, Participant

from binding import TwoPhaseBinding


class Forgetful(Participant):
    """Writes to its log and does not wait for the disk."""

    def _enter(self, state: str) -> bool:
        self.log.write(state)
        self.state = state
        return True


class ForgetfulBinding(TwoPhaseBinding):
    """The same binding on the other participants."""

    def process(self, logs: dict[str, Log], name: str) -> Any:
        """Make a process of what is on its disk."""
        made = super().process(logs, name)
        return Forgetful(logs[name]) if isinstance(made, Participant) else made
