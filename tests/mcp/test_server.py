"""`specchk mcp`: its tools, their sizes, budgets and limits, over standard input and output."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

CHARS_PER_TOKEN = 3
AMPLE = 300  # seconds
LOCK = "docs/lock_service"
# Some 10^11 states.
ENDLESS = """\
spec endless
var x : nat upto 400000 = 0
var y : nat upto 400000 = 0
action right():
    x' = x + 1
action up():
    y' = y + 1
invariant small: x + y >= 0
model one:
    expect holds
"""
# An initial state that takes hours to compute, in the interpreter: no search has begun that could end itself.
RUNAWAY = """\
spec runaway
var x : bool = false
init: x == (exists a in 0..99999: exists b in 0..99999: exists c in 0..99999: a + b + c < 0)
action flip():
    x' = not x
model one:
    expect holds
"""
HANGING = """\
import time
from specchk import At, Binding, never, project

class Hanging(Binding):
    spec, model = "lock_service.spec", "two"
    gate = (At("two"),)

    def start(self):
        time.sleep(10_000)

    @project
    def state(self, system):
        return {}

    acquire, enqueue, next = never("acquire", "?"), never("enqueue", "?"), never("next", "?")
    release, expire, write = never("release", "?"), never("expire", "?"), never("write", "?")
    restart = never("restart", "?")
"""


@pytest.fixture(scope="module")
def server(served: Callable[..., Any]) -> Any:
    made = served(LOCK, "spec/kafka", "spec/examples", options=("--write", "--execute"))
    (made.folder / "endless.spec").write_text(ENDLESS)
    (made.folder / "runaway.spec").write_text(RUNAWAY)
    (made.folder / "lock_service" / "hanging.py").write_text(HANGING)
    return made


def test_a_revision_with_sessions_and_the_one_without_give_the_same_answers(server, served):
    """The SDK's client speaks 2026-07-28 by itself, and an earlier revision after a handshake."""
    earlier = served(LOCK, mode="legacy")
    assert server.client.protocol_version == "2026-07-28"
    assert earlier.client.protocol_version < "2026-07-28"
    spec = {"path": "lock_service/lock_service.spec", "model": "trusting_store", "seconds": AMPLE}
    answers = [each.call("run", **spec) for each in (server, earlier)]
    for answer in answers:
        assert answer["handle"].startswith("run-")
    assert answers[0]["violations"] == answers[1]["violations"]
    assert answers[0]["violations"][0]["trace"][-1] == "write(c1)"


def test_every_tool_is_described_and_documented(server):
    """docs/agents.md has every tool; a client sees a description of each, and of most arguments."""
    tools = server.await_(server.client.list_tools()).tools
    text = (Path(__file__).parents[2] / "docs" / "agents.md").read_text(encoding="utf-8")
    for tool in tools:
        assert tool.description
        assert f"`{tool.name}`" in text
    assert {"seconds"} <= set(next(tool for tool in tools if tool.name == "run").input_schema["required"])


def test_a_counterexample_is_read_step_by_step(server):
    """From a handle: its trace, a step, values and enabled steps in a state, and the coverage."""
    run = server.call("run", path="lock_service/lock_service.spec", model="trusting_store", seconds=AMPLE)
    handle = run["handle"]
    trace = server.call("trace", handle=handle)["states"]
    assert [state.get("step") for state in trace][1:] == run["violations"][0]["trace"]
    assert trace[2]["now"] == {"holder": None}
    step = server.call("step", handle=handle, index=4)
    assert (step["before"]["fence"], step["after"]["fence"]) == (0, 2)
    assert server.call("step", handle=handle, index=0)["step"] is None
    values = server.call("evaluate", handle=handle, index=4, expressions=["fence", "has[c1] < fence"])
    assert [answer["lines"] for answer in values["answers"]] == [["2"], ["true"]]
    at_witness = server.call("evaluate", handle=handle, part="/witnesses/stale", expressions=["holder"])
    assert at_witness["answers"][0]["lines"]
    assert {"acquire", "write"} <= {row["in"] for row in server.call("coverage", handle=handle)["taken"]}
    assert "the states 0 to 5" in server.error("step", handle=handle, index=6)


def test_a_spec_is_reviewed_with_its_recordings(server):
    """What no property notices, and what was never recorded."""
    paths = {"path": "lock_service/lock_service.spec", "tracing": "lock_service/tracing.py"}
    answer = server.call(
        "review", **paths, recordings=["lock_service/leases.ndjson"], seconds=AMPLE, wait=AMPLE
    )
    rows = [(row["kind"], row["text"]) for row in answer["rows"]]
    assert ("unrecorded", "`release` is in no recording") in rows
    assert any(kind == "unnoticed" for kind, _ in rows)
    assert "facts about the searches" in answer["means"]


def test_steps_are_taken_by_hand(server):
    """Without a handle, in the initial state; nothing is kept between calls."""
    lines = [":take acquire(c1)", "holder", ":steps"]
    answers = server.call("evaluate", path="lock_service/lock_service.spec", expressions=lines)["answers"]
    assert answers[1]["lines"] == ["some(c1)"]
    assert any("release(c1)" in line for line in answers[2]["lines"])


def test_a_scenario_is_run(server):
    """Its trace, and values at its end."""
    path = "kafka/kip101.spec"
    text = (server.folder / path).read_text()
    name = next(line.split()[1] for line in text.splitlines() if line.startswith("scenario "))
    answer = server.call("scenario", path=path, name=name)["answers"][0]
    assert any("1 " in line for line in answer["lines"])
    assert "no scenario" in server.call("scenario", path=path, name="none_such")["reason"]


def test_a_long_request_is_polled_and_cancelled(server):
    """`wait` ends the answer and not the request; a cancelled search reports how far it came."""
    begun = server.call("run", path="endless.spec", seconds=AMPLE, wait=0)
    assert begun["running"]
    assert server.call("poll", handle=begun["handle"], wait=0.5)["running"]
    assert "poll it first" in server.error("read", handle=begun["handle"])
    ended = server.call("cancel", handle=begun["handle"])
    assert ended["verdict"] == "inconclusive"
    assert ended["ended_by_server"] == "it was cancelled"
    assert server.call("poll", handle=begun["handle"]) == ended


@pytest.mark.parametrize("case", ["search", "start", "implementation"])
def test_a_runaway_request_ends_at_its_budget(server, case):
    """A search, an initial state that is never computed, an implementation that hangs."""
    began = time.monotonic()
    if case == "implementation":
        answer = server.call("conform", binding="lock_service/hanging.py", seconds=2, wait=60)
    else:
        path = "endless.spec" if case == "search" else "runaway.spec"
        answer = server.call("run", path=path, seconds=2, wait=60)
    assert answer["verdict"] == "inconclusive", answer
    assert time.monotonic() - began < 30  # it hangs otherwise
    assert not _children(server)


def _children(server: Any) -> list[str]:
    """The command lines of processes that work in the server's folder."""
    found = []
    for process in Path("/proc").iterdir() if Path("/proc").is_dir() else ():
        if process.name.isdecimal():
            try:
                if (process / "cwd").readlink().is_relative_to(server.folder):
                    found.append((process / "cmdline").read_text())
            except OSError:
                continue
    return found


def test_only_so_many_requests_run_at_a_time(server):
    """The fifth is refused, and names the others."""
    begun = [server.call("run", path="endless.spec", seconds=AMPLE, wait=0)["handle"] for _ in range(4)]
    try:
        assert begun[0] in server.error("run", path="endless.spec", seconds=AMPLE, wait=0)
    finally:
        for handle in begun:
            server.call("cancel", handle=handle)


def test_no_file_outside_the_folders_is_used(server, tmp_path):
    """`..`, absolute paths, links, links that a spec extends or imports, and names that are options."""
    (tmp_path / "secret.spec").write_text("spec secret\nvar password : bool = false\n")
    (tmp_path / "leases.ndjson").write_text("{}\n")
    here: Path = server.folder
    (here / "link.spec").symlink_to(tmp_path / "secret.spec")
    (here / "away").symlink_to(tmp_path, target_is_directory=True)
    (here / "extends.spec").write_text("spec e\nextends link\n")
    (here / "imports.spec").write_text("spec i\n  import away.secret as s\n")
    (here / "indirect.spec").write_text("spec j\nextends extends\n")
    up = os.path.relpath(tmp_path / "secret.spec", here)
    outside = (str(tmp_path / "secret.spec"), up, "link.spec", "away/secret.spec", "a\0b", "/etc/passwd",
               "lock_service/../../x.spec", "away/../../../etc/passwd", "extends.spec", "imports.spec",
               "indirect.spec", "~/x.spec")  # fmt: skip
    for path in outside:
        for tool, rest in (("check", {}), ("run", {"seconds": AMPLE}), ("evaluate", {"expressions": ["1"]})):
            said = server.error(tool, path=path, **rest)
            assert "password" not in said
            assert "root:" not in said
    assert "no file" in server.error("validate", tracing="lock_service/tracing.py", seconds=AMPLE,
                                     recordings=[str(tmp_path / "leases.ndjson")])  # fmt: skip
    assert "no file" in server.error("conform", binding=str(tmp_path / "binding.py"), seconds=AMPLE)
    for path in ("../x.spec", str(tmp_path / "x.spec"), "away/x.spec", "link.spec", "-x.spec"):
        assert "is not a file" in server.error("write", path=path, text="spec x\n")
    assert "hidden" in server.error("write", path="lock_service/.hidden", text="x")
    assert "no file" in server.error("bind", path="lock_service/lock_service.spec", into="away")
    (here / "--html=x.spec").write_text("spec x\n")
    assert "no file" in server.error("check", path="--html=x.spec")
    assert (tmp_path / "secret.spec").read_text().startswith("spec secret")


def test_names_are_never_options_or_commands(server):
    """What a client names is passed as the value of an option; no shell reads it."""
    marker = server.folder / "marker"
    spec = {"path": "lock_service/lock_service.spec"}
    for name in (
        f"--html={marker}",
        "-h",
        f"; touch {marker}",
        f"$(touch {marker})",
        f"two\n; touch {marker}",
    ):
        assert "model" in server.error("run", **spec, model=name, seconds=AMPLE)
        assert "properties" in server.error("run", **spec, properties=[name], seconds=AMPLE)
        assert "constants" in server.error("run", **spec, constants={name: 1}, seconds=AMPLE)
        assert "name" in server.error("scenario", **spec, name=name)
        assert server.call("run", **spec, constants={"Client": name}, seconds=AMPLE)["exit_code"]
        server.call("evaluate", **spec, expressions=[name.replace("\n", "")])
    assert "one line" in server.error("evaluate", **spec, expressions=["1\n:take acquire(c1)"])
    assert not marker.exists()


def test_a_server_without_permissions_neither_writes_nor_executes(served):
    """`--write` and `--execute` are required for that, and the refusal names them."""
    server = served(LOCK)
    binding = "lock_service/binding.py"
    assert "--execute" in server.error("conform", binding=binding, seconds=AMPLE)
    assert "--execute" in server.error("validate", tracing=binding, recordings=["x"], seconds=AMPLE)
    assert "--write" in server.error("write", path="x.spec", text="")
    assert "--write" in server.error("bind", path="lock_service/lock_service.spec", into="lock_service")


def test_an_unknown_handle_is_a_sentence(server):
    """As after a restart of the server, whose handles differ."""
    assert "run the request again" in server.error("poll", handle="run-1.0000")


def test_the_reference_is_a_resource(server):
    """The language and the documents about bindings and recordings."""
    resources = server.await_(server.client.list_resources()).resources
    assert {str(each.uri) for each in resources} >= {
        "specchk://documents/language",
        "specchk://documents/conformance",
    }
    read = server.await_(server.client.read_resource("specchk://documents/language")).contents[0].text
    assert read == (Path(__file__).parents[2] / "docs" / "language.md").read_text(encoding="utf-8")
    assert server.text("reference", topic="scenarios").startswith("## Scenarios")


@pytest.mark.parametrize("most", [1, pytest.param(8, marks=pytest.mark.slow)])
def test_typical_answers_are_short(server, most):
    """Thirty requests, or more than sixty: each answer has at most 5000 tokens, of three characters each."""
    calls: list[tuple[str, dict[str, Any]]] = []
    specs = [path for folder in ("kafka", "examples")
             for path in sorted((server.folder / folder).glob("*.spec"))[:most]]  # fmt: skip
    for spec in [str(path.relative_to(server.folder)) for path in specs]:
        calls += [("check", {"path": spec}), ("run", {"path": spec, "seconds": AMPLE, "max_states": 5000})]
    topics = ("", "maps", "scenarios", "liveness", "symmetry", "binding", "recording", "time",
              "built-in functions", "types", "actions", "refinement", "sets", "views")  # fmt: skip
    calls += [("reference", {"topic": topic}) for topic in topics]
    calls += [("explain", {"code": code}) for code in ("S101", "S201", "S301", "S501", "S504", "S604")]
    lock = {"path": "lock_service/lock_service.spec"}
    calls += [
        ("test", {**lock, "seconds": AMPLE}), ("simulate", {**lock, "seconds": AMPLE}),
        ("review", {**lock, "seconds": AMPLE}),
        ("evaluate", {**lock, "expressions": [":steps", "holder", "has"]}),
        ("conform", {"binding": "lock_service/binding.py", "seconds": AMPLE}),
        ("validate", {"tracing": "lock_service/tracing.py", "recordings": ["lock_service/leases.ndjson"],
                      "seconds": AMPLE}),
    ]  # fmt: skip
    sizes = {}
    for tool, arguments in calls:
        sizes[f"{tool} {arguments}"] = text = server.text(tool, **{"wait": 60, **arguments} if tool in (
            "run", "test", "simulate", "review", "conform", "validate") else arguments)  # fmt: skip
        if tool == "run" and '"violations"' in text:
            handle = json.loads(text)["handle"]
            for more in ("trace", "coverage"):
                sizes[f"{more} of {arguments}"] = server.text(more, handle=handle)
            sizes[f"step of {arguments}"] = server.text("step", handle=handle, index=1)
            sizes[f"read of {arguments}"] = server.text("read", handle=handle)
    assert len(sizes) >= (60 if most > 1 else 30), len(sizes)
    long = {name: len(text) for name, text in sizes.items() if len(text) > 5000 * CHARS_PER_TOKEN}
    assert not long
