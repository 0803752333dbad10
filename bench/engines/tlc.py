"""TLC as an oracle: the number of states and the violated properties of every bundled model, in both.

    python bench/engines/tlc.py --jar tla2tools.jar [--most 1000000] [--only PATTERN] [--results FILE]

Each model of at most so many states is searched by specchk and by TLC, as `specchk export-tla` writes it,
both without symmetry and to the end.  Prints a line for each model and the table of bench/README.md; the exit
code is 1 if the two disagree.  With --results a run goes on where an earlier one ended.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from specchk.lang.frontend import check

HERE = Path(__file__).resolve().parents[2]
SPECCHK = (sys.executable, "-m", "specchk")


def run(*words: str, cwd: Path = HERE, seconds: float | None = None) -> str:
    """What a program printed; as far as it came if the time ran out."""
    try:
        return subprocess.run(
            words, cwd=cwd, capture_output=True, text=True, check=False, timeout=seconds
        ).stdout
    except subprocess.TimeoutExpired as late:
        return (late.stdout or b"").decode()


def by_specchk(file: str, model: str, most: int) -> dict[str, Any]:
    """States and violations; no states if there are more than `most`."""
    options = ("--no-symmetry", "--keep-going", "--json", "--max-states", str(most))
    said = json.loads(run(*SPECCHK, "run", file, "--model", model, *options))
    stopped = said["states_distinct"] > most or said["verdict"] == "inconclusive"
    violated = {(one["kind"], one["property"]) for one in said["violations"] if one["kind"] != "unreachable"}
    return {
        "states": None if stopped else said["states_distinct"],
        "most": most,
        "violated": sorted(violated),
    }


def by_tlc(folder: Path, name: str, jar: str, seconds: float, violated: list[list[str]]) -> dict[str, Any]:
    """States, and the names of what TLC found violated."""
    # TLC ends at a deadlock, also with -continue.
    ends = ["-deadlock"] if any(kind == "deadlock" for kind, _ in violated) else []
    command = ["java", "-Xmx4g", "-Xss64m", "-XX:+UseSerialGC", "-cp", jar, "tlc2.TLC", "-continue", *ends]
    said = run(*command, "-workers", "1", "-noGenerateSpecTE", name, cwd=folder, seconds=seconds)
    states = re.findall(r"(\d+) distinct states found, 0 states left", said)
    names = set(re.findall(r"(?:Invariant|property|Property) (\w+) (?:.* )?is violated", said))
    # A conjunct of a property, as those of a refinement are, has a place and no name.
    names = {"refinement" if name == "line" else name for name in names}
    temporal = re.search(r"Temporal propert\w+ .*violated", said) is not None
    errors = [
        line for line in said.splitlines() if "Attempted" in line or "In evaluation" in line or "***" in line
    ]
    return {
        "states": int(states[-1]) if states else None, "violated": sorted(names), "temporal": temporal,
        "error": " ".join(errors[:1]) or ("" if states else said[-200:]),
    }  # fmt: skip


def compared(file: str, model: str, own: dict[str, Any], args: argparse.Namespace) -> dict[str, Any]:
    """One model in both."""
    with tempfile.TemporaryDirectory() as folder:
        said = run(*SPECCHK, "export-tla", file, "--model", model, "--no-symmetry", "-o", folder)
        names = re.findall(r"(\w+)\.cfg", said)
        if not names:
            return {"tlc": None, "agree": "not written"}
        began = time.monotonic()
        theirs = by_tlc(Path(folder), names[0], args.jar, args.seconds, own["violated"])
        theirs["seconds"] = round(time.monotonic() - began, 1)
    kinds = {kind for kind, _ in own["violated"]}
    safety = {name for kind, name in own["violated"] if kind in ("invariant", "step invariant")}
    safety |= kinds & {"refinement"}
    if "undefined" in kinds:
        agree = "undefined"  # TLC ends at an error, or goes on
    elif theirs["states"] is None:
        agree = "not finished"
    elif theirs["states"] != own["states"]:
        agree = "different states"
    elif safety != set(theirs["violated"]) or ("liveness" in kinds) != theirs["temporal"]:
        agree = "different verdict"
    else:
        agree = "same"
    return {"tlc": theirs, "agree": agree}


def models(only: str) -> Iterator[tuple[str, str]]:
    """The bundled models, as files and names."""
    for file in sorted(path.relative_to(HERE) for path in (HERE / "spec").rglob("*.spec")):
        if re.search(only, str(file)):
            yield from [(str(file), model) for model in check(str(HERE / file)).spec.models]


def table(results: dict[str, Any]) -> str:
    """The table of bench/README.md: a row for each folder and outcome."""
    rows: dict[tuple[str, str], list[int]] = {}
    for key, one in results.items():
        if "agree" in one:
            rows.setdefault((str(Path(key).parent), one["agree"]), []).append(one["states"])
    lines = ["| folder | outcome | models | states, all | largest |", "|---|---|---|---|---|"]
    for (folder, agree), states in sorted(rows.items()):
        lines.append(f"| {folder} | {agree} | {len(states)} | {sum(states):,} | {max(states):,} |")
    return "\n".join(lines)


def main() -> None:
    """Run what the command line says."""
    parser = argparse.ArgumentParser(description="Compare specchk with TLC on the bundled models.")
    parser.add_argument("--jar", required=True, help="path of tla2tools.jar")
    parser.add_argument("--most", type=int, default=1_000_000, help="states of a model")
    parser.add_argument(
        "--only", default="", help="a part of the paths of the specs, as a regular expression"
    )
    parser.add_argument("--seconds", type=float, default=900, help="time of TLC for a model")
    parser.add_argument("--results", type=Path, help="a JSON file of results, read first and then written")
    args = parser.parse_args()
    args.jar = str(Path(args.jar).resolve())
    results: dict[str, Any] = {}
    if args.results is not None and args.results.exists():
        results = json.loads(args.results.read_text())
    for file, model in models(args.only):
        key = f"{file}:{model}"
        one = results.get(key)
        if one is None or (one["states"] is None and one["most"] < args.most):
            one = results[key] = by_specchk(file, model, args.most)
        if (
            one["states"] is not None
            and one["states"] <= args.most
            and one.get("agree") in (None, "not finished")
        ):
            one |= compared(file, model, one, args)
            print(key, one["states"], one["agree"], one["violated"], one["tlc"], flush=True)
        if args.results is not None:
            args.results.write_text(json.dumps(results, indent=1))
    print(table(results))
    sys.exit(any("different" in one.get("agree", "") for one in results.values()))


if __name__ == "__main__":
    main()
