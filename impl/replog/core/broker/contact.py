"""The controller of a quorum that a broker follows: the newest active one that the broker has learned of.

    heartbeat -> c1      no answer until the next one is due: the next one goes to c2
    c2, term 4: ...      c2 is the controller from now on; messages of an older one are ignored

Theory: KIP-500, RaftControllerNodeProvider, A36 of the project's Kafka reference.  A controller that was
replaced without its knowledge can commit nothing, but it can refuse an ISR proposal that its successor has
granted.  So every message names a term: the controller's own, or the newest one known to the broker.

Not here: the content and time of messages (`membership`, `isr`), and the controllers (`quorum`).
"""

from __future__ import annotations

from dataclasses import dataclass

from replog.core.effects import Effect, Send
from replog.core.messages import HeartbeatRequest, Message, OfTerm, RegisterRequest
from replog.core.quorum_messages import NotController
from replog.core.types import CONTROLLER


@dataclass(slots=True)
class Contact:
    """The controllers' addresses, the current controller among them, and the newest known term."""

    controllers: tuple[int, ...]
    newest_only: bool = True
    address: int = CONTROLLER
    newest: int = 0
    is_waiting: bool = False
    """Whether the last registration or heartbeat has no answer yet."""
    redirected: int = 0
    """The newest term in which a controller named another one as active."""

    def copy(self) -> Contact:
        """Return a snapshot."""
        return Contact(
            self.controllers, self.newest_only, self.address, self.newest, self.is_waiting, self.redirected
        )

    def addressed(self, effects: list[Effect]) -> list[Effect]:
        """Return the effects, with messages to the controller addressed to one member of the quorum."""
        return [
            self._address(effect) if isinstance(effect, Send) and effect.to == CONTROLLER else effect
            for effect in effects
        ]

    def _address(self, send: Send) -> Send:
        if isinstance(send.message, HeartbeatRequest | RegisterRequest):
            if self.is_waiting:
                # It may be dead, or cut off from the others and unable to answer.
                place = self.controllers.index(self.address) + 1
                self.address = self.controllers[place % len(self.controllers)]
            self.is_waiting = True
        assert not isinstance(send.message, OfTerm)
        return Send(self.address, OfTerm(self.newest, send.message))

    def accept(self, source: int, message: OfTerm) -> Message | None:
        """Return the message of a controller, or None if this broker does not follow that controller.

        `NotController` if the next request should not wait for its timer.
        """
        if isinstance(message.message, NotController):
            return self._redirect(message.term, message.message)
        if message.term < self.newest and self.newest_only:
            return None
        self.newest = max(self.newest, message.term)
        self.address, self.is_waiting = source, False
        return message.message

    def _redirect(self, term: int, hint: NotController) -> NotController | None:
        """Switch to another controller; at once only the first time in a term, as two may name each other."""
        if term < self.newest or hint.active not in self.controllers:
            return None
        self.address, self.is_waiting = hint.active, False
        if term <= self.redirected:
            return None
        self.redirected = term
        return hint
