"""The demo's stories, each a run of one cluster under today's rules or under those of a preset.

    cut-off         the leader is cut off and killed, a follower restarts at the same moment (B1, B31)
    fast-failover   two brokers lead in turns, and neither copies the other's records (B3)
    missed-epoch    a follower does not learn of a leader in between, and follows the first one again (B6, B8)
    new-disk        a follower's disk is replaced, and it is back before its session ends (KAFKA-1120, B18)
    dead-leader     two brokers stop cleanly, then the leader dies for good (B11)
    late-replica    the ISR dies, and a broker with an old copy starts first (B16)
    skipped-epoch   a leader is leader again, and skips the epoch in between (A18)

Every story comes after the same first chapter (`Stage.calm_days`), and ends with producers at rest.  Each
preset has one in which its rules show; under today's rules no story loses a record or diverges.  Each B is an
entry of the project's Kafka reference.

Not here: the cluster, and what is printed of it (`stage`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from replog.core.types import CONTROLLER
from replog.demo.stage import Stage


@dataclass(frozen=True, slots=True)
class Story:
    """The events, the sentence that announces them, and whether brokers may skip metadata versions."""

    about: str
    run: Callable[[Stage], None]
    skips_metadata: bool = False


def cut_off(stage: Stage) -> None:
    """Lose the leader with records that nobody has copied, while a follower restarts."""
    cut_the_leader(stage)
    kill_the_leader(stage)
    bring_back_who_is_dead(stage)


def cut_the_leader(stage: Stage) -> None:
    """Cut the leader off from everything except its clients, and write to it."""
    leader, *others = stage.brokers()
    with stage.chapter(f"Broker {leader}, the leader, is cut off. It still accepts records with acks=1."):
        stage.cables.cut_between(leader, CONTROLLER, *others)
        stage.click(leader, 400)


def kill_the_leader(stage: Stage) -> None:
    """Kill the leader and a follower, and start the follower again."""
    leader, follower, _ = stage.brokers()
    with stage.chapter(f"kill -9 broker {leader}; broker {follower} restarts at the same moment."):
        stage.world.crash(leader)
        # Both at one moment: the follower comes back with a checkpointed HW that is behind, and the leader,
        # which could correct it, is out of reach.
        stage.world.crash(follower)
        stage.cables.cut.clear()
        stage.run(50)
        stage.world.restart(follower)
        stage.run(14_000)


def bring_back_who_is_dead(stage: Stage) -> None:
    """Start the broker that was killed, and wait until all logs are equal."""
    dead = next(node.broker_id for node in stage.world.nodes.values() if node.broker is None)
    with stage.chapter(f"Broker {dead} returns with the log that it had when it was killed."):
        stage.world.restart(dead)
        stage.last_days(6_000)


def fast_failover(stage: Stage) -> None:
    """Let two brokers alternate as leader while no broker can copy records."""
    first, second, third = stage.brokers()
    with stage.chapter("The cables between the brokers are cut; all of them still reach the controller."):
        stage.cables.cut_between(first, second, third)
        stage.cables.cut_between(second, third)
        stage.click(first, 300)
    with stage.chapter(f"An operator makes broker {second} lead for a moment, then broker {first} again."):
        stage.elect(second)
        stage.click(second, 300)
        stage.elect(first)
        stage.click(first, 200)
    with stage.chapter("The cables are repaired."):
        stage.cables.cut.clear()
        stage.last_days(6_000)


def missed_epoch(stage: Stage) -> None:
    """Let a follower copy records that its leader then truncates, unaware of the leader in between."""
    first, second, third = stage.brokers()
    with stage.chapter(f"Broker {second} is cut off from the other brokers. Only broker {third} copies."):
        stage.cables.cut_between(second, first, third)
        stage.click(first, 300)
    with stage.chapter(f"Broker {second} leads, broker {first} truncates; broker {third} is not notified."):
        stage.cables.cut.clear()
        stage.cables.cut.add((CONTROLLER, third))
        stage.elect(second)
        stage.run(500)
    with stage.chapter(f"Broker {first} leads again. Only now is broker {third} notified."):
        stage.elect(first)
        stage.run(200)
        stage.cables.cut.clear()
        stage.last_days(6_000)


def new_disk(stage: Stage) -> None:
    """Replace the disk of a follower, and lose the leader before the follower has copied the log again."""
    leader, follower, _ = stage.brokers()
    with stage.chapter(f"Broker {follower} gets a new, empty disk; the leader, broker {leader}, dies."):
        stage.world.crash(follower)
        stage.world.crash(leader)
        stage.replace_disk(follower)
        stage.run(50)
        stage.world.restart(follower)
        stage.run(14_000)
    bring_back_who_is_dead(stage)


def dead_leader(stage: Stage) -> None:
    """Stop both followers one after the other, lose the leader, and start the followers."""
    leader, second, third = stage.brokers()
    with stage.chapter(f"Broker {third} is stopped for maintenance, then broker {second}."):
        for broker in (third, second):
            stage.world.shut_down(broker)
            stage.run(5_000)
    with stage.chapter(f"Broker {leader} dies, and does not return. The others start again."):
        stage.world.crash(leader)
        stage.run(5_000)
        for broker in (second, third):
            stage.world.restart(broker)
        stage.last_days(10_000)


def late_replica(stage: Stage) -> None:
    """Lose both members of the ISR, and first start a broker that is not a member."""
    leader, second, third = stage.brokers()
    with stage.chapter(f"Broker {third} dies; the other two continue without it."):
        stage.world.crash(third)
        stage.run(8_000)
    with stage.chapter(f"Brokers {leader} and {second} die. Broker {third} returns with its old log."):
        stage.world.crash(leader)
        stage.world.crash(second)
        stage.run(5_000)
        stage.world.restart(third)
        stage.run(8_000)
    with stage.chapter(f"Brokers {leader} and {second} return, too."):
        stage.world.restart(leader)
        stage.world.restart(second)
        stage.last_days(8_000)


def skipped_epoch(stage: Stage) -> None:
    """Let a leader keep its state of the followers across an epoch of which it is not notified."""
    first, second, third = stage.brokers()
    with stage.chapter(f"The cable between brokers {first} and {second} is cut. Only broker {third} copies."):
        stage.cables.cut_between(first, second)
        stage.click(first, 150)
    with stage.chapter(
        f"Broker {second} leads briefly, broker {third} truncates; broker {first} is not notified."
    ):
        stage.cables.cut.add((CONTROLLER, first))
        stage.elect(second)
        stage.run(60)
        stage.cables.cut_between(first, third)
        stage.world.shut_down(second)
        stage.run(10)
        stage.cables.cut.discard((CONTROLLER, first))
        stage.elect(first)
        stage.run(200)
    with stage.chapter(f"Broker {first} dies at once. Only broker {third} is left in the ISR."):
        stage.world.crash(first)
        stage.run(5_000)
    with stage.chapter("The others return."):
        stage.cables.cut.clear()
        for node in list(stage.world.nodes.values()):
            if node.broker is None:
                stage.world.restart(node.broker_id)
        stage.last_days(8_000)


STORIES: Mapping[str, Story] = MappingProxyType(
    {
        "cut-off": Story("The leader is lost with records that no follower has copied.", cut_off),
        "fast-failover": Story("Two brokers lead alternately, without copying each other.", fast_failover),
        "missed-epoch": Story(
            "A follower does not learn of the leader in between.", missed_epoch, skips_metadata=True
        ),
        "new-disk": Story("A follower returns with an empty disk before its session ends.", new_disk),
        "dead-leader": Story("The followers shut down cleanly, and the leader dies for good.", dead_leader),
        "late-replica": Story("The ISR dies, and a broker outside it starts first.", late_replica),
        "skipped-epoch": Story(
            "A leader is elected again, and skips the epoch in between.", skipped_epoch, skips_metadata=True
        ),
    }
)

STORY_OF: Mapping[str, str] = MappingProxyType(
    {
        "kafka-4.1": "cut-off",
        "kafka-4.1-as-is": "skipped-epoch",
        "kafka-4.1-upgraded": "dead-leader",
        "hw-truncation": "cut-off",
        "no-truncation": "cut-off",
        "kip101": "fast-failover",
        "kip279": "missed-epoch",
        "kip320": "new-disk",
        "unclean": "late-replica",
    }
)
"""Of each preset the story that demonstrates its rules."""
