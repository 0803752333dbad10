"""The stories of the matrix on replog: a preset of the past does what the release of the past does.

A story's run is replayed step by step on replog's cores under each preset, and compared as a cluster is:
logs, high watermarks, leader, ISR and what is acknowledged.  Where replog differs from the release that a
preset is named after, docs/apache-kafka.md ("replog beside Kafka") says why.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from types import MappingProxyType

import pytest
from conformance.apache_kafka.matrix import read_cells
from conformance.apache_kafka.stories import STORIES, Outcome
from conformance.apache_kafka.traces import STORIES as FILE

from past_rules import PastRulesBinding
from replog.core.protocol import preset
from specchk.compile.instantiate import instantiate
from specchk.conform.contract import Accepted
from specchk.conform.contract.values import reader
from specchk.conform.replay.spec_side import SpecSide
from specchk.explore.scenario import run_scenario
from specchk.lang.frontend import check

RELEASES = {
    "hw-truncation": ("0.10.2.2",), "kip101": ("0.11.0.3", "1.1.1"), "kip320": ("2.4.1",),
    "kafka-4.1-as-is": ("4.0.0", "4.1.1", "4.4.0"),
}  # fmt: skip
REPRODUCED = None
# Where replog differs: the step that prevents it there.
DIFFERENT = {
    ("B11", "0.10.2.2"): REPRODUCED,
    **{("B20", release): 11 for release in ("0.10.2.2", "0.11.0.3", "1.1.1")},
    **{("B11-ELR", release): 9 for release in ("0.10.2.2", "0.11.0.3", "1.1.1", "2.4.1")},
    **{("B11-ELR", release): 12 for release in ("4.0.0", "4.1.1", "4.4.0")},
    ("KAFKA-18991", "4.0.0"): 22,
}  # fmt: skip
SEEN = ("log", "hw", "current", "acked")


class PresetBinding(PastRulesBinding):
    """replog under a preset, whatever rules the model has."""

    spec, rules, name = str(FILE), MappingProxyType({}), "kafka-4.1"

    def cluster_rules(self):
        protocol = preset(self.name)
        elr = protocol.elr and self.constants["elr"]  # a setting of the cluster, as in the matrix
        return replace(super().cluster_rules(), protocol=replace(protocol, elr=elr))


@cache
def story_run(scenario):
    checked = check(str(FILE))
    written = checked.spec.scenarios[scenario]
    instance = instantiate(checked, written.model.text)
    return instance.program, run_scenario(instance, written).trace


def view(program, state):
    """What can be seen of a cluster, of a state: for each log the epochs of its records."""
    values = {variable.name: value for variable, value in zip(program.variables, state, strict=True)}
    logs = []
    for _, ends in values["log"]:
        epochs = []
        for epoch, end in enumerate(ends):
            epochs += [epoch] * (end - len(epochs))
        logs.append(epochs)
    # The leader and ISR by the controller; the partition epoch is not compared.
    return logs, values["hw"], values["meta"][values["current"]][:2], values["acked"]


def prevented_at(story, name):
    """The step at which replog does something else than the spec, from 1, or REPRODUCED."""
    program, trace = story_run(story.scenario)
    binding = PresetBinding(program)
    binding.name = name
    spec, readers = SpecSide(binding), [reader(variable.type) for variable in program.variables]
    kind = type(binding)
    project, keep, back = (getattr(binding, kind.marked(each)) for each in ("project", "snapshot", "restore"))
    methods = {action.action: getattr(binding, action.method) for action in kind.actions()}
    places = [keep(binding.start())]
    for number, step in enumerate(trace.steps, 1):
        call, after = spec.instance(step), []
        for place in places:
            for way in call.ways:
                system = back(place)
                answer = methods[step.action](system, *call.plain, *([way] if way else []))
                seen = project(system)
                state = [read(seen[v.name]) for read, v in zip(readers, program.variables, strict=True)]
                is_taken = answer is None or isinstance(answer, Accepted)
                if is_taken and view(program, state) == view(program, step.state):
                    after.append(keep(system))
        if not after:
            return number
        places = after
    return REPRODUCED


def test_todays_rules_prevent_the_loss_that_kafka_has():
    """With unknown LEOs in each new epoch, as by the repair of Kafka, HW waits at step 24."""
    assert prevented_at(STORIES["B21"], "kafka-4.1") == 24


@pytest.mark.parametrize("story", STORIES.values(), ids=list(STORIES))
def test_a_preset_does_what_its_releases_do(story):
    """Each is reproduced where the release has it, and else prevented at that step, or it is explained."""
    cells = {(cell.story, cell.release): cell.verdict for cell in read_cells() if not cell.repaired}
    for name, releases in RELEASES.items():
        step = prevented_at(story, name)
        for release in releases:
            verdict = cells[story.name, release]
            kafkas = REPRODUCED if verdict.outcome is Outcome.REPRODUCED else verdict.step
            is_explained = (story.name, release) in DIFFERENT
            assert step == DIFFERENT.get((story.name, release), kafkas), (name, release)
            assert is_explained == (step != kafkas), (name, release)
