"""Progress in Spark's UI, as its REST API has it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from spark.small import natively, program
from specchk.spark.engine import SparkOptions

# A process of its own: the context of the other tests has no UI.
SEARCH = """
import json, sys, time, urllib.request
import specchk.spark.session as sessions
from specchk.spark.engine import SparkOptions, search
from specchk.spark.session import session
sys.path.insert(0, sys.argv[1])
from spark.small import program
sessions.SHOWN_EVERY_S = 0.0
with session("local[2]", {"spark.ui.port": "0", "spark.driver.memory": "512m"}) as context:
    options = SparkOptions(handover=10, partitions=2)
    search(program("kafka/kip320.spec"), options)
    jobs = f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}/jobs"
    # The UI is told of a job after it has ended.
    for _ in range(100):
        found = json.load(urllib.request.urlopen(jobs))
        if ("remove tables", "SUCCEEDED") in [(job["description"][-13:], job["status"]) for job in found]:
            break
        time.sleep(0.1)
print(json.dumps(found))
"""
LINE = re.compile(r"specchk kip320: level (\d+), (\d+) states, (\d+) a second")


def jobs_of_search() -> list[dict[str, Any]]:
    """The jobs of a search, the first one first."""
    line = [sys.executable, "-c", SEARCH, str(Path(__file__).parents[1])]
    done = subprocess.run(line, capture_output=True, text=True, check=True, env=os.environ)
    found: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return sorted(found, key=lambda job: int(job["jobId"]))


def test_the_ui_shows_level_states_and_rate() -> None:
    """Each level of the search with all states so far, as the report has them; no task is spent on it."""
    jobs = jobs_of_search()
    shown = [(job, match) for job in jobs if (match := LINE.fullmatch(job["description"]))]
    levels = natively(program("kafka/kip320.spec"), SparkOptions()).statistics.levels
    wanted = [(level, sum(levels[:level])) for level in range(1, len(levels) + 1)]
    found = [(int(match[1]), int(match[2])) for _, match in shown]
    assert found[-1] == wanted[-1]
    assert set(found) <= set(wanted)
    assert found == sorted(found)
    assert len(set(found)) > 5
    assert all(int(match[3]) > 0 for _, match in shown)
    assert {(job["status"], job["numTasks"]) for job, _ in shown} == {("SUCCEEDED", 0)}
