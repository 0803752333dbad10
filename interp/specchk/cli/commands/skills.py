"""`specchk skills`: what coding agents have to know, as files where they look for it."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType

import click

from specchk.cli.written import put_new

SKILLS = Path(__file__).parents[1] / "skills"
# agent -> the folder in which it looks for skills; the form of the files is the same
PLACES = MappingProxyType({
    "claude": ".claude/skills", "agents": ".agents/skills", "cursor": ".cursor/skills",
    "copilot": ".github/skills", "gemini": ".gemini/skills",
})  # fmt: skip


@click.command("skills")
@click.argument("action", type=click.Choice(["install"]))
@click.argument("folder", type=click.Path(), default=".")
@click.option(
    "--for", "agents", multiple=True, type=click.Choice([*PLACES]), default=("claude", "agents"),
    show_default=True, help="Agent that will use them; repeatable. Most others read those for `agents`.",
)  # fmt: skip
def command(action: str, folder: str, agents: tuple[str, ...]) -> None:
    """Write skills for coding agents into FOLDER, by default this one; no file is overwritten.

    They describe how to write a spec, bind an implementation and validate recordings, and what may be
    claimed then.
    """
    files = {file.parent.name: file.read_text(encoding="utf-8") for file in sorted(SKILLS.glob("*/SKILL.md"))}
    texts = {f"{PLACES[agent]}/{name}/SKILL.md": text for agent in agents for name, text in files.items()}
    put_new(Path(folder), texts, f"specchk mcp {folder}, as a server that the agent starts")
