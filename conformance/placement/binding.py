"""placement.spec and replog: the placement of the replicas of a new topic's partitions on brokers.

The system is the number of partitions that a topic was created with, from none on; its state is what
`replog.core.controller.placement` gives for that many.  Where a partition goes must not depend on how many
follow it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from replog.core.controller.placement import assign, assign_simple
from specchk.conform.contract.binding import Accepted, Answer, At, Binding, Impossible, action, project
from specchk.conform.contract.known_bad import BadCode, BadSpec
from specchk.ir.program import Program


@dataclass(slots=True)
class Topic:
    """A topic that is created with one more partition in each step."""

    partitions: int = 0


class PlacementBinding(Binding[Topic]):
    """Both rules of the spec, for every possible start of the first partition."""

    spec, model = "../../spec/placement.spec", "five_brokers"
    gate = (
        At("five_brokers"),
        At("three_brokers"),
        *(At("anywhere", {"fixed_start_index": str(broker)}) for broker in range(4)),
        At("simple_rule", {"fixed_start_index": "0"}),
    )
    controls = (
        BadSpec("followers stay beside their leader", "five_brokers", {"rule": "neighbours"}),
        BadCode("followers are never shifted", assign, "shift += 1", "shift += 0", "five_brokers"),
        BadCode("a follower beside its leader", assign, "first + 1 + ", "first + ", "three_brokers"),
        BadCode("every topic begins at broker 0", assign, "(partition + start_index) % n", "partition % n",
                "anywhere", {"fixed_start_index": "1"}),
        BadCode("replicas beside each other", assign_simple, "(i + j) % n", "(i + 2 * j) % n",
                "simple_rule", {"fixed_start_index": "0"}),
    )  # fmt: skip

    follows: ClassVar[str] = ""
    """The rule that a control's wrong spec is compared with; of any other spec it is the model's."""

    @classmethod
    def against(cls, program: Program) -> Binding[Topic]:
        """Return the binding to Kafka's rule, whichever rule the spec has."""
        return type(cls.__name__, (cls,), {"follows": "kafka"})(program)

    def start(self) -> Topic:
        """A topic without partitions."""
        return Topic()

    @action("place")
    def place(self, topic: Topic) -> Answer:
        """One more partition."""
        if topic.partitions == self.constants["Partitions"]:
            return Impossible("no more partitions in this model")
        topic.partitions += 1
        return Accepted()

    @project
    def state(self, topic: Topic) -> dict[str, Any]:
        """The result of the model's rule; partitions not created yet are on broker 0, as in the spec."""
        numbers = self.constants
        brokers, replicas, begin = range(numbers["Brokers"]), numbers["ReplicationFactor"], self._begin()
        if (self.follows or numbers["rule"]) == "kafka":
            placed = assign(brokers, topic.partitions, replicas, begin, begin)
        else:
            placed = assign_simple(brokers, topic.partitions, replicas)
        missing = numbers["Partitions"] - topic.partitions
        rows = [*placed, *[(0,) * replicas] * missing]
        return {
            "start_index": begin, "start_shift": begin, "next_partition": topic.partitions,
            "replicas": {number: dict(enumerate(row)) for number, row in enumerate(rows)},
        }  # fmt: skip

    def _begin(self) -> int:
        """Return the start of the first partition and the shift; 0 if the model leaves it open."""
        begin: int = self.constants["fixed_start_index"]
        return max(begin, 0)
