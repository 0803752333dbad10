"""`specchk bind --recording`: a sample of any shape becomes a tracing that loads, and refuses it at first."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from bank import SPEC
from click.testing import CliRunner

from laws.sources import ROOT
from specchk.cli.commands.bind import command as bind
from specchk.conform.contract.load import load_tracing
from specchk.conform.contract.log_tracing import LogTracing
from specchk.conform.recordings.campaign import run_campaign
from specchk.conform.recordings.explainer import CampaignOptions
from specchk.lang.frontend import check

FLAT = [
    {"time": n, "event": kind, "from": "ann", "sum": 1} for n, kind in enumerate(["transferred", "tossed"])
]
DEEP = [{"log": {"@kind": one["event"], "who": {"a": "ann"}}, "node": f"n{one['time']}"} for one in FLAT]
PLAIN = [{"level": "info", "text": one["event"], "n": one["time"]} for one in FLAT]
OURS = [
    {"format": "shop/1"}, {"at": 1, "seq": 1, "event": "tossed", "after": {"coin": "heads"}},
    {"end": True, "events": 1},
]  # fmt: skip


def bound(folder: Path, lines: Sequence[dict[str, Any]], *more: str) -> str:
    """The skeleton for a bank and a log."""
    (folder / "bank.spec").write_text(SPEC)
    (folder / "log.ndjson").write_text("".join(json.dumps(line) + "\n" for line in lines))
    words = [
        "--recording",
        str(folder / "bank.spec"),
        str(folder / "log.ndjson"),
        "--into",
        str(folder),
        *more,
    ]
    result = CliRunner().invoke(bind, words)
    assert result.exit_code == 0, result.output
    return (folder / "tracing.py").read_text()


@pytest.mark.parametrize(
    ("lines", "kind", "writer"), [(FLAT, "event", ""), (DEEP, "log.@kind", "node"), (PLAIN, "text", "")]
)
def test_a_skeleton_names_the_fields_and_refuses_the_log(tmp_path, lines, kind, writer):
    """The kinds wait with their fields and the likeliest action; as it is, nothing is explained."""
    text = bound(tmp_path, lines)
    cls = load_tracing(tmp_path / "tracing.py")
    assert issubclass(cls, LogTracing)
    assert (cls.kind, cls.writer, cls.ignored) == (kind, writer, {})
    assert f'# UNMAPPED 1 x "transferred", the first is {tmp_path}/log.ndjson:1' in text
    assert "transfer(a: Account, b: Account)" in text
    assert 'Call("toss", ())' in text
    campaign = run_campaign(cls, check("bank.spec", SPEC), [tmp_path / "log.ndjson"], CampaignOptions())
    assert campaign.vacuous[0].startswith("no method reads the lines `tossed` (1), `transferred` (1): ")
    # As the reader is told to: uncommented, one kind is read.
    filled = text.replace('    # @event("tossed")\n    # def', '    @event("tossed")\n    def').replace(
        '    #     return Call("toss"', '        return Call("toss"'
    )
    (tmp_path / "tracing.py").write_text(filled)
    campaign = run_campaign(
        load_tracing(tmp_path / "tracing.py"), check("bank.spec", SPEC), [tmp_path / "log.ndjson"],
        CampaignOptions(),
    )  # fmt: skip
    assert campaign.tally.kinds == {"tossed": 1}
    assert campaign.tally.unmapped == {"transferred": 1}


def test_a_recording_with_a_header_has_a_tracing_of_its_format(tmp_path):
    """It has writers, numbers and an end already."""
    text = bound(tmp_path, OURS)
    cls = load_tracing(tmp_path / "tracing.py")
    assert (cls.reads, issubclass(cls, LogTracing)) == ("shop/1", False)
    assert '#   e["after"]["coin"] = "heads"' in text


def test_the_kind_may_be_named(tmp_path):
    """A guess may be wrong; a field that no line has is refused."""
    assert '"a1": "a1"' not in bound(tmp_path, FLAT, "--kind", "from")
    assert load_tracing(tmp_path / "tracing.py").kind == "from"  # type: ignore[attr-defined]
    words = ["--recording", str(tmp_path / "bank.spec"), str(tmp_path / "log.ndjson"), "--kind", "nothing"]
    result = CliRunner().invoke(bind, [*words, "--into", str(tmp_path / "b")])
    assert result.exit_code != 0
    assert "no line of the sample has the field `nothing`; name that field" in result.output
    assert CliRunner().invoke(bind, [str(tmp_path / "bank.spec"), str(tmp_path)]).exit_code == 2


@pytest.mark.parametrize("spec", ["spec/raft/etcd_raft.spec", "docs/lock_service/lock_service.spec"])
def test_the_skeleton_of_a_bundled_spec_loads(tmp_path, spec):
    """Several files are one run of several writers, by the names of the spec."""
    runs = ROOT / "docs" / "hashicorp_raft" / "run"
    result = CliRunner().invoke(bind, ["--recording", str(ROOT / spec), str(runs), "--into", str(tmp_path)])
    assert result.exit_code == 0, result.output
    cls = load_tracing(tmp_path / "tracing.py")
    assert issubclass(cls, LogTracing)
    assert (cls.kind, cls.per_writer, list(cls.names)) == ("@message", True, ["n1", "n2", "n3"])
    assert len(cls.read(runs).unmapped) == 30
    files = [str(file) for file in sorted(runs.iterdir())]
    again = CliRunner().invoke(bind, ["--recording", str(ROOT / spec), *files, "--into", str(tmp_path / "b")])
    assert again.output.endswith(" ".join(["tracing.py", *files]) + "\n")


def test_a_skeleton_proposes_what_fits(tmp_path):
    """A clock, names for the writers that are alike; and to name files if it has none."""
    logs = [tmp_path / f"{name}.log" for name in ("lockd", "worker-a", "worker-b")]
    for log, kind in zip(logs, ("tossed", "transferred", "looked"), strict=True):
        log.write_text(json.dumps({"event": kind, "time": 1.5}) + "\n")
    (tmp_path / "bank.spec").write_text(SPEC)
    words = ["--recording", str(tmp_path / "bank.spec")]
    refused = CliRunner().invoke(bind, [*words, str(tmp_path), "--into", str(tmp_path / "none")])
    assert f"there is no *.ndjson in {tmp_path}; name its files" in refused.output
    made = CliRunner().invoke(bind, [*words, *map(str, logs), "--into", str(tmp_path)])
    assert made.exit_code == 0, made.output
    text = (tmp_path / "tracing.py").read_text()
    assert load_tracing(tmp_path / "tracing.py").names == {"worker-a": "a1", "worker-b": "a2"}
    assert '# time, within = "time", 0.0' in text
