"""The tools of the server: each is a `specchk` command in a process of its own, or a part of its report.

The docstrings are the descriptions that clients show to their models.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from mcp.server.mcpserver.exceptions import ToolError
from msgspec import Struct
from pydantic import Field

from specchk.kept import replace
from specchk.lang.codes.catalogue import CODES
from specchk.lang.text.diagnostics import nearest
from specchk.mcp import views
from specchk.mcp.folders import Folders, OutsideFolders, Permitted
from specchk.mcp.jobs import BadRequest, Job, Jobs
from specchk.mcp.pages import MOST_TOKENS, TOKENS, NoPart, fitted, page
from specchk.mcp.reference import section

WAIT_SECONDS = 25.0  # less than the minute after which many clients give up
QUICK_SECONDS = 60.0  # the limit of a request that searches nothing

Path = Annotated[str, Field(description="Path of a spec, in a folder of this server")]
# Not only a help for clients: click reads the value of `--model=--html=FILE` as an option of its own.
NAME = r"^[^\W\d][\w.]*$"
Name = Annotated[str, Field(pattern=NAME)]
Model = Annotated[str, Field(pattern=f"^$|{NAME}", description="Name of a model; empty: the file's first")]
Constants = Annotated[
    dict[Name, str | int | bool] | None, Field(description="Constants and sizes of sorts to override")
]
Budget = Annotated[float, Field(gt=0, le=86_400, description="Budget in seconds: the request ends there")]
Wait = Annotated[
    float, Field(ge=0, le=600, description="Seconds to wait for the answer; then a handle to poll")
]
Handle = Annotated[str, Field(description="Handle of an earlier answer")]
Tokens = Annotated[int, Field(ge=200, le=MOST_TOKENS, description="Largest size of the answer")]
Part = Annotated[
    str, Field(description="Path of a part of the report, such as /violations/1; empty: the first trace")
]


class Permissions(Struct, frozen=True):
    """What the server's owner permits beyond reading: to `write` files, and to `execute` bindings."""

    write: bool = False
    execute: bool = False


class Tools:
    """The tools, on the folders, permissions and jobs of a server."""

    def __init__(self, folders: Folders, permissions: Permissions, jobs: Jobs) -> None:
        self.folders, self.permissions, self.jobs = folders, permissions, jobs

    async def check(self, path: Path, tokens: Tokens = TOKENS) -> str:
        """Check the syntax, names, types and models of a spec, without exploring states."""
        return await self._quick("check", ["check", "--json"], self._spec(path), tokens)

    async def run(
        self, path: Path, seconds: Budget, model: Model = "", constants: Constants = None,
        properties: Annotated[list[Name] | None, Field(description="Check only these properties")] = None,
        max_states: Annotated[int | None, Field(ge=1, description="Stop after this number of states")] = None,
        memory: Annotated[str, Field(pattern=r"^\d+[MG]$", description="Stop at this memory")] = "2G",
        prove: Annotated[bool, Field(description="Prove by induction, for unbounded offsets")] = False,
        wait: Wait = WAIT_SECONDS, tokens: Tokens = TOKENS,
    ) -> str:  # fmt: skip
        """Search all states of a model: a shortest counterexample, or a verdict with its bounds."""
        words = ["run", "--json", "--keep-going", *_limits(seconds, memory), *_choice(model, constants)]
        words = [*words, *[f"--property={name}" for name in properties or ()]]
        words = [*words, *([f"--max-states={max_states}"] if max_states else [])]
        words = [word for word in words if not prove or word != "--keep-going"] + (
            ["--prove"] if prove else []
        )
        return await self._start("run", words, self._spec(path), seconds, wait, tokens)

    async def simulate(
        self, path: Path, seconds: Budget, model: Model = "", constants: Constants = None,
        walks: Annotated[int, Field(ge=1)] = 1000, steps: Annotated[int, Field(ge=1)] = 100, seed: int = 1,
        wait: Wait = WAIT_SECONDS, tokens: Tokens = TOKENS,
    ) -> str:  # fmt: skip
        """Check random walks, for models too large to search. No violation proves nothing."""
        words = ["simulate", "--json", f"--walks={walks}", f"--steps={steps}", f"--seed={seed}"]
        words = [*words, *_limits(seconds, "2G"), *_choice(model, constants)]
        return await self._start("simulate", words, self._spec(path), seconds, wait, tokens)

    async def test(
        self,
        path: Path,
        seconds: Budget,
        model: Model = "",
        wait: Wait = WAIT_SECONDS,
        tokens: Tokens = TOKENS,
    ) -> str:
        """Compare all models and scenarios of a spec (or those of one model) with what they expect."""
        words = ["test", "--json", *_limits(seconds, "2G"), *_choice(model, None)]
        return await self._start("test", words, self._spec(path), seconds, wait, tokens)

    async def scenario(
        self, path: Path, name: Annotated[Name, Field(description="Name of a scenario")],
        expressions: Annotated[
            list[str] | None, Field(max_length=50, description="As in `evaluate`; none: its trace")
        ] = None,
        tokens: Tokens = TOKENS,
    ) -> str:  # fmt: skip
        """Run a scenario of a spec, and show its trace or evaluate expressions at its end."""
        words = ["repl", "--json", f"--scenario={name}"]
        return await self._quick(
            "scenario", words, self._spec(path), tokens, "\n".join(expressions or [":trace"])
        )

    async def conform(
        self, binding: Annotated[str, Field(description="Path of a binding, a Python file")], seconds: Budget,
        tier: Annotated[str, Field(pattern="^(smoke|gate|exhaustive)$")] = "gate", model: Model = "",
        wait: Wait = WAIT_SECONDS, tokens: Tokens = TOKENS,
    ) -> str:  # fmt: skip
        """Check an implementation against its spec, by its binding; a divergence has the shortest path to it.

        With a model, one suite of that model; else the suites of the tier.
        """
        self._require(self.permissions.execute, "execute", "runs the code of a binding")
        words = ["conform", "--json", *(_choice(model, None) or [f"--tier={tier}"])]
        return await self._start("conform", words, self._place(binding), seconds, wait, tokens)

    async def validate(
        self, tracing: Annotated[str, Field(description="Python file that maps events to actions")],
        recordings: Annotated[list[str], Field(min_length=1, description="Files, or folders of *.ndjson")],
        seconds: Budget, wait: Wait = WAIT_SECONDS, tokens: Tokens = TOKENS,
    ) -> str:  # fmt: skip
        """Check whether recordings of a running implementation are behaviours of the spec."""
        self._require(self.permissions.execute, "execute", "runs the code of a binding")
        files = [str(self._place(path).path) for path in recordings]
        return await self._start(
            "validate", ["validate", "--json"], self._place(tracing), seconds, wait, tokens, files
        )

    async def review(
        self, path: Path, seconds: Budget,
        tracing: Annotated[str, Field(description="With recordings: file that maps events to actions")] = "",
        recordings: Annotated[list[str] | None, Field(description="Files, or folders of *.ndjson")] = None,
        wait: Wait = WAIT_SECONDS, tokens: Tokens = TOKENS,
    ) -> str:  # fmt: skip
        """List what a spec does not say: unused parts, changes that no property notices, and so on."""
        place, words, files = self._spec(path), ["review", "--json"], list[str]()
        if tracing or recordings:
            self._require(self.permissions.execute, "execute", "runs the code of a tracing")
            words.append(f"--tracing={self._place(tracing).path}")
            files = [str(self._place(file).path) for file in recordings or ()]
        return await self._start("review", words, place, seconds, wait, tokens, files)

    async def poll(self, handle: Handle, wait: Wait = WAIT_SECONDS, tokens: Tokens = TOKENS) -> str:
        """Wait for a request that is running; its answer, or that it still runs."""
        job = self._job(handle)
        await self.jobs.wait(job, wait)
        return views.answer(job, tokens)

    async def cancel(self, handle: Handle, tokens: Tokens = TOKENS) -> str:
        """End a request that is running; a search that has begun reports how far it came."""
        job = self._job(handle)
        await self.jobs.cancel(job)
        return views.answer(job, tokens)

    async def read(
        self, handle: Handle, part: Annotated[str, Field(description="Path, such as /coverage")] = "",
        start: Annotated[int, Field(ge=0, description="First item to show")] = 0, tokens: Tokens = TOKENS,
    ) -> str:  # fmt: skip
        """Read a part of a report, where an answer had `more` or `on_request`."""
        try:
            return page(self._done(handle).report, part, start, tokens)
        except NoPart as error:
            raise ToolError(str(error)) from None

    async def trace(self, handle: Handle, part: Part = "", tokens: Tokens = TOKENS) -> str:
        """A trace of a report: its first state, and at each step what changed."""
        path, trace = self._trace(handle, part)
        kept = self.jobs.keep("trace", {"of": path, "states": views.steps_of(trace)}, self._job(handle).place)
        return views.answer(kept, tokens)

    async def step(
        self, handle: Handle,
        index: Annotated[int, Field(ge=0, description="Number of the state it leads to")],
        part: Part = "", tokens: Tokens = TOKENS,
    ) -> str:  # fmt: skip
        """One step of a trace: its action, what it changed, before and after, and the whole state."""
        path, trace = self._trace(handle, part)
        kept = self.jobs.keep("step", {"of": path, **self._step(trace, index)}, self._job(handle).place)
        return views.answer(kept, tokens)

    async def evaluate(
        self,
        expressions: Annotated[list[str], Field(
            min_length=1, max_length=50,
            description="Expressions, :steps (what is enabled), :take ACTION(ARGS), :undo, :state, :trace",
        )],
        handle: Annotated[str, Field(description="Evaluate in a state of this report's trace")] = "",
        index: Annotated[int | None, Field(ge=0, description="Number of that state; none: the last")] = None,
        part: Part = "",
        path: Annotated[str, Field(description="Without a handle: a spec, in its first initial state")] = "",
        model: Model = "", constants: Constants = None, tokens: Tokens = TOKENS,
    ) -> str:  # fmt: skip
        """Evaluate expressions in a state, and take steps from it by hand. Nothing is kept between calls."""
        words = ["repl", "--json", *_choice(model, constants)]
        if any("\n" in line or line.strip() == ":quit" for line in expressions):
            raise ToolError("an expression is one line")
        if handle:
            _, trace = self._trace(handle, part)
            self._step(trace, len(trace) - 1 if index is None else index)
            report, place = self._job(handle).report, self._job(handle).place
            spec = self._spec(str(place.folder / str(report.get("spec"))))
            of_model = {
                name: report.get(name) for name in ("model", "constants", "sorts") if report.get(name)
            }
            kept = {**of_model, "spec": spec.name, "trace": trace[: None if index is None else index + 1]}
            with self.jobs.file(json.dumps(kept)) as file:
                words.append(f"--trace={file}")
                return await self._quick("evaluate", words, spec, tokens, "\n".join(expressions))
        return await self._quick("evaluate", words, self._spec(path), tokens, "\n".join(expressions))

    async def coverage(self, handle: Handle, tokens: Tokens = TOKENS) -> str:
        """What a run or simulation never did, then how often it took each action and branch."""
        job = self._done(handle)
        rows = job.report.get("coverage") if isinstance(job.report, dict) else None
        if not rows:
            raise ToolError(f"{handle} has no coverage: it is of `run` and `simulate`")
        never = views.unused(job.report)
        report = {"never": never, "taken": [row for row in rows if row not in never]}
        return views.answer(self.jobs.keep("coverage", report, job.place), tokens)

    async def explain(self, code: Annotated[str, Field(description="Such as S204")]) -> str:
        """The page of a diagnostic code, with an example of the mistake."""
        entry = CODES.get(code.strip().upper())
        if entry is None:
            raise ToolError(
                f"there is no diagnostic code {code}; {nearest(code.upper(), CODES) or 'check lists them'}"
            )
        return entry.render()

    async def reference(
        self, topic: Annotated[str, Field(description="A heading or a word; empty: the contents")] = "",
        tokens: Tokens = TOKENS,
    ) -> str:  # fmt: skip
        """The reference of the specification language: its contents, or the section about a topic."""
        return section(topic, tokens)

    async def write(
        self, path: Annotated[str, Field(description="Path of a file in a folder of this server")],
        text: Annotated[str, Field(max_length=1 << 20)],
    ) -> str:  # fmt: skip
        """Write a text file, such as a spec or a binding; a file that exists is replaced."""
        self._require(self.permissions.write, "write", "writes files")
        place = self._placed(self.folders.new, path)
        if any(name.startswith(".") for name in place.path.relative_to(place.folder).parts):
            raise ToolError(f"{path} is hidden, and hidden files are not written")
        replace(place.path, text.encode())
        return fitted({"wrote": place.name, "characters": len(text)}, TOKENS)

    async def bind(
        self, path: Path, into: Annotated[str, Field(description="Existing folder of the binding")],
        language: Annotated[str, Field(pattern="^(python|javascript|go|java)$")] = "python",
        model: Model = "",
    ) -> str:  # fmt: skip
        """Write the skeleton of a binding between a spec and an implementation; existing files stay."""
        self._require(self.permissions.write, "write", "writes files")
        words = ["bind", f"--into={self._place(into).path}", f"--language={language}", *_choice(model, None)]
        return await self._quick("bind", words, self._spec(path), TOKENS)

    async def _quick(
        self, tool: str, words: Sequence[str], place: Permitted, tokens: int, given: str = ""
    ) -> str:
        job = self._started(tool, [*words, place.name], place, QUICK_SECONDS, given)
        await self.jobs.wait(job, QUICK_SECONDS + 30)
        return views.answer(job, tokens)

    async def _start(
        self, tool: str, words: Sequence[str], place: Permitted, seconds: float, wait: float, tokens: int,
        files: Sequence[str] = (),
    ) -> str:  # fmt: skip
        job = self._started(tool, [*words, place.name, *files], place, seconds, "")
        await self.jobs.wait(job, wait)
        return views.answer(job, tokens)

    def _started(self, tool: str, words: Sequence[str], place: Permitted, seconds: float, given: str) -> Job:
        try:
            return self.jobs.start(tool, words, place, seconds, given)
        except BadRequest as error:
            raise ToolError(str(error)) from None

    def _require(self, is_permitted: bool, option: str, reason: str) -> None:
        if not is_permitted:
            raise ToolError(
                f"this tool {reason}, which this server may not: start it with `specchk mcp --{option}`"
            )

    def _spec(self, path: str) -> Permitted:
        return self._placed(self.folders.spec, path)

    def _place(self, path: str) -> Permitted:
        return self._placed(self.folders.place, path)

    def _placed(self, find: Any, path: str) -> Permitted:
        try:
            place: Permitted = find(path)
        except OutsideFolders as error:
            raise ToolError(str(error)) from None
        return place

    def _job(self, handle: str) -> Job:
        try:
            return self.jobs.job(handle)
        except BadRequest as error:
            raise ToolError(str(error)) from None

    def _done(self, handle: str) -> Job:
        job = self._job(handle)
        if job.is_running:
            raise ToolError(f"{handle} is running; poll it first")
        return job

    def _trace(self, handle: str, path: str) -> tuple[str, list[dict[str, Any]]]:
        try:
            return views.trace_of(self._done(handle), path)
        except (BadRequest, NoPart) as error:
            raise ToolError(str(error)) from None

    def _step(self, trace: list[dict[str, Any]], index: int) -> dict[str, Any]:
        try:
            return views.step_of(trace, index)
        except BadRequest as error:
            raise ToolError(str(error)) from None


def _choice(model: str, constants: Mapping[str, str | int | bool] | None) -> list[str]:
    """The options that choose a model."""
    words = [f"--model={model}"] if model else []
    for name, value in (constants or {}).items():
        words.append(f"--set={name}={str(value).lower() if isinstance(value, bool) else value}")
    return words


def _limits(seconds: float, memory: str) -> list[str]:
    return [f"--max-seconds={seconds:g}", f"--max-memory={memory}"]
