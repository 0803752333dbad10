"""An agent, as a script: with tools alone, it writes a spec from a description, finds a flaw, and binds it.

What it is told is DESCRIPTION; what it sends and gets is docs/agent-session.md, which `--rewrite` writes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SESSION = Path(__file__).parents[2] / "docs" / "agent-session.md"
AMPLE = 300  # seconds
DESCRIPTION = """\
A lock service grants a lease to one client at a time. Each lease has a token, greater than all before.
A lease may end without its client noticing. Clients write to a store, and send their token with each
write. No write may be taken after one with a greater token.
"""
HEAD = """\
# Session of an agent

A script that acts as an agent would, with the tools of `specchk mcp` alone: from a description it writes
the spec of a lock service, finds the flaw in it, corrects the design, and binds an implementation, in which
it finds a bug. `tests/mcp/test_agent.py` is the script; this is what it sent (`>`) and got, with long lines
cut. The description:

"""
SPEC = """\
spec lock_service
sort Client
const MaxToken : int = 3
const compares : bool = true                   # the store compares tokens
var holder : Client? = none
var token  : nat upto MaxToken = 0             # the last one that was granted
var has    : Client -> nat upto MaxToken = { c: 0 for c in Client }
var seen   : nat upto MaxToken = 0             # the greatest that the store has taken
action acquire(c: Client):
    require holder == none
    holder' = some(c)
    token' = token + 1
    has'[c] = token + 1
action release(c: Client):
    require holder == some(c)
    holder' = none
    has'[c] = 0
action expire():
    require holder != none
    holder' = none
action write(c: Client):
    require has[c] > 0 GUARD
    seen' = has[c]
step invariant fenced: seen' >= seen
reachable late: exists c in Client: 0 < has[c] and has[c] < seen
deadlock ok
model two:
    Client = 2
    expect holds
"""
FLAWED_MODEL = """\
model trusting extends two:
    compares = false
    expect violates fenced
"""
LOCK = """\
class LockService:
    def __init__(self):
        self.holder, self.token, self.tokens, self.seen = None, 0, {}, 0

    def acquire(self, client):
        if self.holder is not None:
            return False
        self.holder, self.token = client, self.token + 1
        self.tokens[client] = self.token
        return True

    def release(self, client):
        if self.holder != client:
            return False
        self.holder = None
        self.tokens.pop(client)
        return True

    def expire(self):
        held, self.holder = self.holder, None
        return held is not None

    def write(self, client):
        token = self.tokens.get(client, 0)
        if token == 0 or token COMPARES self.seen:
            return False
        self.seen = token
        return True
"""
BINDING = """\
from lock import LockService

from specchk import Accepted, At, BadCode, BadSpec, Binding, Refused, action, project


def answer(is_done):
    return Accepted() if is_done else Refused("it refuses")


class LockBinding(Binding[LockService]):
    spec, model = "lock_service.spec", "two"
    gate = (At("two"),)
    controls = (
        BadSpec("a store that does not compare", "trusting"),
        BadCode("a token twice", LockService.acquire, "self.token + 1", "max(self.token, 1)", "two"),
    )

    def start(self):
        return LockService()

    @project
    def state(self, lock):
        has = {client: lock.tokens.get(client, 0) for client in self.program.sorts[0].members}
        return {"holder": lock.holder, "token": lock.token, "has": has, "seen": lock.seen}

    @action("acquire")
    def acquire(self, lock, client):
        return answer(lock.acquire(client))

    @action("release")
    def release(self, lock, client):
        return answer(lock.release(client))

    @action("expire")
    def expire(self, lock):
        return answer(lock.expire())

    @action("write")
    def write(self, lock, client):
        return answer(lock.write(client))
"""


class Agent:
    """What it knows of the protocol is the names of tools, and what answers contain."""

    def __init__(self, server: Any) -> None:
        self.server = server
        self.lines: list[str] = []

    def think(self, thought: str) -> None:
        self.lines.append(f"\n{thought}\n")

    def call(self, tool: str, **arguments: Any) -> Any:
        text = self.server.text(tool, **arguments)
        shown = {name: value for name, value in arguments.items() if name != "text"}
        self.lines += ["```text", *_cut(f"> {tool} {json.dumps(shown)}")]
        if "text" in arguments:
            self.lines.append(arguments["text"].rstrip())
        self.lines += [*_cut(text), "```"]
        return json.loads(text) if text[0] in "{[" else text


def _cut(text: str) -> list[str]:
    """The lines of an answer without what differs between runs, and long ones cut."""
    timeless = re.sub(r'"(seconds\w*)": \d+\.\d+', r'"\1": 0', text)
    same = re.sub(r"(-\d+)\.[0-9a-f]{4}\b", r"\1", timeless)
    lines = [line if len(line) <= 900 else f"{line[:900]} ..." for line in same.splitlines()]
    return lines if len(lines) <= 12 else [*lines[:12], "..."]


def test_an_agent_writes_a_spec_finds_its_flaw_and_binds_it(
    served: Callable[..., Any], request: pytest.FixtureRequest
) -> None:
    """The whole way, by tools alone; each conclusion is drawn from an answer."""
    agent = Agent(served(options=("--write", "--execute")))
    _finds_the_flaw(agent)
    _binds_it(agent)
    text = HEAD + "".join(f"> {line}\n" for line in DESCRIPTION.splitlines()) + "\n".join(agent.lines) + "\n"
    if request.config.getoption("--rewrite"):
        SESSION.write_text(text, encoding="utf-8")
    assert SESSION.read_text(encoding="utf-8") == text


def _finds_the_flaw(agent: Agent) -> None:
    agent.think("First the language: how a map is written.")
    assert "{ role with" in agent.call("reference", topic="Maps and sequences", tokens=600)
    agent.think(
        "The description as a spec. The store takes each write with a token: nothing says that it compares."
    )
    described = SPEC.replace(" GUARD", "").replace("    seen' = has[c]", "    seen = has[c]")
    agent.call("write", path="lock_service.spec", text=described)
    rejected = agent.call("check", path="lock_service.spec")
    assert rejected["verdict"] == "rejected"
    diagnostic = rejected["diagnostics"][0]
    agent.think(f"{diagnostic['code']}: an assignment is written with a prime.")
    assert diagnostic["code"] in agent.call("explain", code=diagnostic["code"])
    agent.call("write", path="lock_service.spec", text=SPEC.replace(" GUARD", ""))
    assert agent.call("check", path="lock_service.spec")["verdict"] == "ok"
    run = agent.call("run", path="lock_service.spec", seconds=AMPLE)
    assert run["verdict"] == "violated"
    violation = run["violations"][0]
    assert violation["property"] == "fenced"
    agent.think("A flaw of the design: the counterexample, its last step, and what each client has there.")
    agent.call("trace", handle=run["handle"])
    last = agent.call("step", handle=run["handle"], index=violation["steps"])
    assert last["after"]["seen"] < last["before"]["seen"]
    before = violation["steps"] - 1
    lines = ["has", "seen", "holder"]
    values = agent.call("evaluate", handle=run["handle"], index=before, expressions=lines)
    assert len(values["answers"]) == 3
    agent.think(
        "A late client writes with a smaller token, and the store takes it. It has to compare tokens. The "
        "design without the comparison becomes a model that must fail."
    )
    guarded = SPEC.replace("GUARD", "and (has[c] >= seen or not compares)") + FLAWED_MODEL
    agent.call("write", path="lock_service.spec", text=guarded)
    tested = agent.call("test", path="lock_service.spec", seconds=AMPLE)
    assert tested["exit_code"] == 0
    held = agent.call("run", path="lock_service.spec", seconds=AMPLE)
    assert held["verdict"] == "holds_within"
    assert "never write `proved`" in held["means"]
    agent.think(f"It holds within {', '.join(held['bounds'])} for two clients: bounded, not proved.")
    assert agent.call("coverage", handle=held["handle"])["never"] == []


def _binds_it(agent: Agent) -> None:
    agent.think("The implementation, and a binding that calls it in any state.")
    agent.call("write", path="lock.py", text=LOCK.replace("COMPARES", "<="))
    agent.call("write", path="binding.py", text=BINDING)
    diverges = agent.call("conform", binding="binding.py", seconds=AMPLE, wait=AMPLE)
    assert diverges["verdict"] == "diverges"
    divergence = agent.call("read", handle=diverges["handle"], part="/suites/0/divergence", tokens=1500)
    assert divergence["action"] == "write"
    agent.think("The second write of the same client is refused, and the spec allows it. The code is wrong.")
    agent.call("write", path="lock.py", text=LOCK.replace("COMPARES", "<"))
    conforms = agent.call("conform", binding="binding.py", seconds=AMPLE, wait=AMPLE)
    assert conforms["verdict"].startswith("conforms")
    controls = agent.call("read", handle=conforms["handle"], part="/controls")
    assert len(controls) == 2
    assert all(control["found"] for control in controls)
    agent.think("It conforms in all cases of the gate, whose two controls were detected.")
