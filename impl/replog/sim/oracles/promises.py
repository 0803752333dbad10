"""The promises of a running cluster that must hold under all faults: Kafka's, by name.

    hw-within-log        HW never passes the LEO                                               (P1)
    hw-monotone          within one leadership HW never falls                                  (I2, P10)
    committed-agree      every replica's prefix below its HW is the committed prefix           (P7)
    committed-copies     what becomes committed is on min.insync.replicas disks                (I16)
    isr-complete         every live member of the controller's ISR and ELR holds what is
                         committed                                                             (P2)
    leader-complete      a new leader holds all that is committed                              (P3)
    one-leader           one leader per leader epoch, by the controller and by the brokers     (P14)
    in-assignment        leader, ISR and ELR are replicas; one is added or removed, not both   (P6, P13)
    log-matching         same epoch at the same offset: same record, same prefix               (P8)
    ack-after-commit     an acknowledged (acks=all) record is in the committed prefix          (P11)
    reads-committed      a consumer reads only the committed prefix, the same each time        (P9)
    log-start            no log starts later than was requested, and no live member of ISR or
                         ELR earlier than clients know it                                      (A35, P27)
    no-duplicate         an idempotent producer's record is in the log once, in order          (P15, P16)
    never-gives-up       a retried batch of an idempotent producer is never refused for good    (A2)
    commits-kept         a consumer group goes on where it has committed, whoever coordinates   (A31, S62)
    metadata-kept        what controllers of a quorum have committed is in the log of each later
                         active one                                                            (P28)
    flushed-survives     a power loss takes nothing that was flushed
    disk-is-log          what a process has in memory is what its disk would give back
    has-leader           once faults are over and all brokers run, one leads                   (P26)
    converges            ... a reassignment ends, every replica joins the ISR with the same
                         committed log, others have none, and every produce is answered        (P22-P25)
    step-limit           a run ends: simulated time advances, whatever the messages
    no-exception         no core raises, whatever it is sent

The committed prefix is a ghost: the longest prefix any leader ever had below its HW.

Not here: how they are checked (`oracles`).
"""

from __future__ import annotations

from collections import Counter

ORACLES = (
    "hw-within-log", "hw-monotone", "committed-agree", "committed-copies", "isr-complete", "leader-complete",
    "one-leader", "in-assignment", "log-matching", "ack-after-commit", "reads-committed", "log-start",
    "no-duplicate", "never-gives-up", "commits-kept", "metadata-kept", "flushed-survives", "disk-is-log",
    "has-leader", "converges", "step-limit", "no-exception",
)  # fmt: skip
"""Every oracle, as in the table above."""
OF_QUORUMS = frozenset({"metadata-kept"})
"""Oracles that have nothing to check where there is one controller."""


class ViolationError(Exception):
    """A violated guarantee; `oracle` is its name in the table above."""

    def __init__(self, oracle: str, detail: str) -> None:
        assert oracle in ORACLES, oracle
        super().__init__(oracle, detail)
        self.oracle = oracle
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.oracle}: {self.detail}"


def praise(checks: Counter[str], *, has_groups: bool) -> str:
    """Return the verdict on runs without a broken promise, and the oracles that had nothing to check.

    Without groups nobody commits, and one controller keeps what it decides: there is no such promise.
    """
    promised = [oracle for oracle in ORACLES if has_groups or oracle != "commits-kept"]
    promised = [oracle for oracle in promised if checks[oracle] or oracle not in OF_QUORUMS]
    unchecked = [oracle for oracle in promised if not checks[oracle]]
    return "all oracles hold" + (f", nothing to check for {', '.join(unchecked)}" if unchecked else "")
