"""A broker and several controllers: which one it addresses, and which one it follows."""

from __future__ import annotations

from core_support import NOW, PARTITION

from replog.core.broker.broker import Broker
from replog.core.broker.contact import Contact
from replog.core.broker.membership import Membership
from replog.core.broker.replica import Replica
from replog.core.broker.state import ReplicaState
from replog.core.effects import Fired, Received, Send, SetTimer, Timer
from replog.core.messages import (
    AlterPartitionRequest,
    FetchRequest,
    ForPartition,
    HeartbeatReply,
    MetadataUpdate,
    OfTerm,
    RegisterReply,
    RegisterRequest,
)
from replog.core.quorum_messages import NotController
from replog.core.types import CONTROLLER, Error

VOTERS = (-1, -2, -3)
PROPOSAL = AlterPartitionRequest(1, PARTITION, 0, 1, 0, 1, ((0, 1),))
BEAT = RegisterRequest(0, 1)


def addresses(contact: Contact, times: int) -> list[int]:
    return [contact.addressed([Send(CONTROLLER, BEAT)])[0].to for _ in range(times)]


def test_a_silent_controller_is_given_up_after_one_beat():
    """The next registration or heartbeat goes to the next one, but a proposal does not."""
    contact = Contact(VOTERS)
    assert addresses(contact, 5) == [-1, -2, -3, -1, -2]
    assert contact.addressed([Send(CONTROLLER, PROPOSAL)]) == [Send(-2, OfTerm(0, PROPOSAL))]


def test_only_what_is_for_a_controller_is_addressed():
    """Messages to brokers and clients, and timers, stay as they are."""
    effects = [Send(2, FetchRequest(1, 0, 0, 0)), Send(-10, PROPOSAL), SetTimer(Timer.HEARTBEAT, 1)]
    assert Contact(VOTERS).addressed(effects) == effects
    named = ForPartition(PARTITION, PROPOSAL)
    assert Contact(VOTERS).addressed([Send(CONTROLLER, named)]) == [Send(-1, OfTerm(0, named))]


def test_it_goes_by_the_newest_that_it_has_known():
    """An older one is ignored, whatever it sends; the newest is addressed from then on."""
    contact = Contact(VOTERS)
    update = MetadataUpdate(())
    assert contact.accept(-2, OfTerm(4, update)) == update
    assert contact.accept(-1, OfTerm(3, update)) is None
    assert (contact.address, contact.newest) == (-2, 4)
    assert contact.accept(-3, OfTerm(4, update)) == update
    old = Contact(VOTERS, newest_only=False)
    assert old.accept(-2, OfTerm(4, update)) == update
    assert old.accept(-1, OfTerm(3, update)) == update
    assert (old.address, old.newest) == (-1, 4)


def test_an_answer_keeps_the_address():
    """The next heartbeat goes to the controller that answered."""
    contact = Contact(VOTERS)
    addresses(contact, 1)
    contact.accept(-1, OfTerm(1, MetadataUpdate(())))
    assert addresses(contact, 1) == [-1]


def test_a_controller_that_names_another_is_followed_once_at_once():
    """In a term: two that name each other make no loop; an old or unknown one is not followed."""
    contact = Contact(VOTERS, newest=3)
    assert contact.accept(-1, OfTerm(2, NotController(-3))) is None
    assert contact.address == -1
    assert contact.accept(-1, OfTerm(3, NotController(-3))) == NotController(-3)
    assert contact.accept(-3, OfTerm(3, NotController(-1))) is None
    assert contact.address == -1
    assert contact.accept(-3, OfTerm(9, NotController(-7))) is None
    assert contact.newest == 3


def test_a_copy_changes_alone():
    """A snapshot has the same fields."""
    contact = Contact(VOTERS, False, -2, 5, True, 4)
    twin = contact.copy()
    assert twin == contact
    addresses(twin, 1)
    assert contact.address == -2


def new_broker() -> Broker:
    return Broker(Membership(0, 1), Replica(ReplicaState(0)), contact=Contact(VOTERS))


def test_a_broker_registers_with_a_controller_that_was_named():
    """At once, and its timer rings as before."""
    process = new_broker()
    (first,) = (effect for effect in process.start() if isinstance(effect, Send))
    assert first == Send(-1, OfTerm(0, BEAT))
    out = process.handle(Received(-1, OfTerm(2, NotController(-2))), NOW)
    assert out == [Send(-2, OfTerm(0, BEAT))]
    out = process.handle(Received(-2, OfTerm(2, RegisterReply(1, Error.NONE, 5))), NOW)
    assert {send.to for send in out} == {-2}
    assert {send.message.term for send in out} == {2}
    assert process.membership.broker_epoch == 5


def test_a_broker_ignores_an_older_controller():
    """Its answer changes nothing; a shutdown is requested from the newest one."""
    process = new_broker()
    process.handle(Received(-2, OfTerm(2, RegisterReply(1, Error.NONE, 5))), NOW)
    process.handle(Received(-2, OfTerm(2, HeartbeatReply(5, Error.NONE, True, False))), NOW)
    stale = HeartbeatReply(5, Error.STALE_BROKER_EPOCH, True, False)
    assert process.handle(Received(-1, OfTerm(1, stale)), NOW) == []
    assert process.membership.broker_epoch == 5
    (wish,) = process.shut_down()
    assert (wish.to, wish.message.term, wish.message.message.wants_shutdown) == (-2, 2, True)
    (beat, _) = process.handle(Fired(Timer.HEARTBEAT), NOW)
    assert beat.to == -3  # the wish has no answer
