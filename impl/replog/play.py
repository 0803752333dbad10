"""`replog play`: the story of a cluster, command by command, and a picture of the final logs.

    replog play               the stories there are
    replog play s29_loss      one of them
    replog play FILE          commands of one's own, with what they do

Not here: the commands (`replog.sim.scenarios`).
"""

from pathlib import Path
from textwrap import shorten

import click

from replog.sim.scenario import ScenarioError, difference, perform
from replog.sim.scenarios.picture import draw

TITLE_WIDTH = 96


def stories() -> dict[str, Path]:
    """Return the stories that come with replog, by name."""
    found = sorted((Path(__file__).parent / "stories").glob("*.txt"))
    return {path.stem: path for path in found}


def title(path: Path) -> str:
    """Return the first sentence of a story."""
    prose = path.read_text(encoding="utf-8").split("\n\n", 1)[0]
    text = " ".join(line.removeprefix("#").strip() for line in prose.splitlines())
    return shorten(text.split(". ", 1)[0].rstrip("."), TITLE_WIDTH, placeholder=" ...")


@click.command()
@click.argument("story", required=False, metavar="[NAME|FILE]")
@click.option("--compare", is_flag=True, help="Show only outputs that differ from those in the file.")
@click.pass_context
def command(context: click.Context, story: str | None, compare: bool) -> None:
    """Play a story: the worked examples F1 to F9, the failures S29 and S31, or a file of commands.

    After each command come the clients' answers and the brokers that changed; after the last one, the logs
    side by side. Without a name, the stories are listed. With --compare, the exit code is 1 if an output
    differs from that in the file.
    """
    known = stories()
    if story is None:
        for name, path in known.items():
            click.echo(f"{name:22}{title(path)}")
        return
    path = known.get(story, Path(story))
    if not path.is_file():
        raise click.UsageError(f"{story!r} is neither a story nor a file; `replog play` lists the stories")
    try:
        if compare:
            differences = difference(path)
            click.echo(differences, nl=False)
            context.exit(int(differences != ""))
        text, cluster = perform(path.read_text(encoding="utf-8"))
    except (ScenarioError, UnicodeDecodeError) as error:
        raise click.ClickException(f"{path}: {error}") from error
    picture = draw(cluster.world.nodes.values())
    click.echo("\n".join([text, *picture]) if picture else text, nl=bool(picture))
