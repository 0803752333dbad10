"""The opponent: schedules that repeat, right clients that withstand it, and flaws that it finds."""

import asyncio
import sys
from functools import partial
from pathlib import Path

import pytest
import small_client
from serving import Broker, batch, run

from replog.cli import run as run_command
from replog.core.types import Error
from replog.run.serve import fixture, rehearsal
from replog.run.serve.adversary import ACTS, LAST, PROFILES, Act, Adversary, Intervention, drawn, listed
from replog.run.serve.frames import Api
from replog.run.serve.host import GROUPS, Settings
from replog.run.serve.judging import Finding
from replog.run.serve.rehearsal import Run, lanes, program, rehearse, schedules, shrunk, written

# Not as a plugin, which pytest refuses where another test has imported the module before.
replog_cluster = fixture.replog_cluster

MOST_SEEDS = 40
MOST_EVENTS = 6
HARDEST = (
    Intervention(Api.PRODUCE, 2, Act.LOSE),
    Intervention(Api.PRODUCE, 5, Act.MOVE),
    Intervention(Api.PRODUCE, 7, Act.CUT_AFTER),
    Intervention(Api.FETCH, 1, Act.CUT_AFTER),
    Intervention(Api.METADATA, 2, Act.STALE),
    Intervention(Api.OFFSET_COMMIT, 1, Act.UNCERTAIN),
    Intervention(Api.OFFSET_FETCH, 2, Act.REFUSE),
)


def test_a_seed_says_the_same_whatever_was_asked_before():
    everything = [(api, n) for api in Api for n in range(1, 2 * LAST)]
    first, second = drawn(7, PROFILES["all"]), drawn(7, PROFILES["all"])
    assert [first(*each) for each in everything] == [second(*each) for each in reversed(everything)][::-1]
    chosen = [each for each in (first(*each) for each in everything) if each]
    assert all(each.act in ACTS[each.api] and each.n <= LAST for each in chosen)
    assert {str(each) for each in chosen} != {
        str(x) for e in everything if (x := drawn(8, PROFILES["all"])(*e))
    }


def test_nothing_is_done_that_no_cluster_could_do(tmp_path):
    """A producer that waits for nobody is not told of too few replicas; brokers are not counted."""
    everything = tuple(
        Intervention(Api.PRODUCE, n, act) for n, act in enumerate((Act.REFUSE, Act.UNCERTAIN), 1)
    )

    async def scenario():
        broker = Broker(tmp_path, Settings(cluster=(0, 1)))
        made = Run()
        hand = Adversary(listed(everything), made.note)
        hand.watch(broker.host)
        broker.service = hand.service(broker.host, broker.service.addresses)
        await broker.host.until(lambda image: GROUPS in image.partitions)
        await broker.create("t")
        for n in range(2):
            assert (await broker.produce(batch(str(n)), acks=1))["error_code"] == Error.NONE
        asked = {"partition_index": 0, "timestamp": -1}
        for replica in (1, -1):
            topics = [{"name": "t", "partitions": [asked]}]
            await broker.ask(Api.LIST_OFFSETS, replica_id=replica, isolation_level=0, topics=topics)
        assert (made.done, hand.seen[Api.PRODUCE], hand.seen[Api.LIST_OFFSETS]) == ([], 2, 1)

    run(scenario)


def test_no_broker_goes_back_behind_what_it_has_told(tmp_path):
    """A leader that has acknowledged a record says of no HW below it; nor do metadata go back."""
    acts = [Intervention(Api.FETCH, 1, Act.EMPTY)]
    acts += [Intervention(Api.METADATA, n, Act.STALE) for n in range(1, 9)]

    async def scenario():
        broker = Broker(tmp_path)
        made = Run()
        hand = Adversary(listed(tuple(acts)), made.note)
        hand.watch(broker.host)
        broker.service = hand.service(broker.host, broker.service.addresses)
        await broker.host.until(lambda image: GROUPS in image.partitions)

        async def partitions(topic):
            answer = await broker.ask(Api.METADATA, version=9, topics=[{"name": topic}])
            return len(answer["topics"][0]["partitions"])

        await broker.create("t")
        assert await partitions("t") == 1
        # Somebody else has an election held, of which this broker has not told yet.
        hand.before = broker.host.image
        await broker.create("u", partitions=2)
        assert [await partitions("u") for _ in range(3)] == [0, 2, 2]
        await broker.produce(batch("a"))
        asked = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}
        limits = {"max_wait": 0, "min_bytes": 1, "max_bytes": 1 << 20}
        topics = [{"topic": "t", "partitions": [asked]}]
        answer = await broker.ask(Api.FETCH, **limits, topics=topics)
        assert answer["responses"] == ()
        assert answer["throttle_time"] > 0
        assert [str(each) for each in made.done] == ["METADATA 2: stale", "FETCH 1: empty"]

    run(scenario)


def test_a_cluster_with_an_opponent_ends_when_a_broker_fails(tmp_path, monkeypatch):
    hands, said = [], []

    class Kept(Adversary):
        def watch(self, process):
            Adversary.watch(self, process)
            hands.append(self)

    def say(line):
        said.append(line)
        # Not while followers connect: of a connection that a listener has just taken, its close loses sight.
        asyncio.get_running_loop().call_later(0.3, hands[0].hosts[1].fail, OSError("no space left"))

    monkeypatch.setattr(rehearsal, "Adversary", Kept)
    with pytest.raises(OSError, match="no space left"):
        asyncio.run(rehearsal.serve(str(tmp_path / "all"), listed(()), 0, False, say))
    assert [line.split()[0] for line in said] == ["serving"]


def test_a_schedule_is_read_as_it_was_written(tmp_path):
    (tmp_path / "x.ndjson").write_text(written(Run(list(HARDEST))))
    named, is_unclean = schedules(str(tmp_path / "x.ndjson"))
    assert not is_unclean
    assert [named["x"](each.api, each.n) for each in HARDEST] == list(HARDEST)
    assert list(schedules("unclean:3..4")[0]) == ["seed-3", "seed-4"]
    (tmp_path / "y.ndjson").write_text('{"api": "PRODUCE"}\n')
    for text in ("rude:3", "x", "1..", "9..3", str(tmp_path / "y.ndjson")):
        with pytest.raises(ValueError, match=r"neither a file|no intervention|no seed"):
            schedules(text)


def test_of_a_shrunk_run_no_intervention_can_be_left_out(tmp_path, monkeypatch):
    """Also not one that was needed only beside another, which then was left out."""
    first, second = (Intervention(Api.PRODUCE, n, Act.LATE) for n in (1, 2))

    async def rehearsed(path, schedule, client, *, is_unclean=False):
        done = [each for n in (1, 2) if (each := schedule(Api.PRODUCE, n))]
        return Run(done, findings=[] if second in done and first not in done else [Finding("lost", "x")])

    monkeypatch.setattr(rehearsal, "rehearse", rehearsed)
    failed = Run([first, second], findings=[Finding("lost", "x")])
    assert asyncio.run(shrunk(str(tmp_path), failed, small_client.work)).done == []


def test_the_fixture_does_not_wait_for_a_cluster_that_cannot_start(tmp_path):
    (tmp_path / "file").write_text("")
    path = str(tmp_path / "file" / "cluster")
    with pytest.raises(OSError, match="File exists"), fixture.opposed(path, "7"):
        pytest.fail("there is no cluster")
    with pytest.raises(ValueError, match="several seeds"), fixture.opposed(str(tmp_path), "0..99"):
        pytest.fail("it would be one run")


def test_a_right_client_withstands_it_and_a_flaw_is_shown_in_lanes(tmp_path):
    async def scenario():
        client = partial(small_client.work, rounds=2)
        right = await rehearse(str(tmp_path / "right"), listed(HARDEST), client)
        assert (right.findings, set(right.done)) == ([], set(HARDEST))
        wrong = await rehearse(
            str(tmp_path / "wrong"),
            listed((Intervention(Api.PRODUCE, 1, Act.LOSE),)),
            partial(small_client.work, flaw="error codes not read", rounds=1),
        )
        assert next(finding.rule for finding in wrong.findings) == "lost"
        assert f"{'':30}PRODUCE 1: lose\nacked r0" in lanes(wrong)

    run(scenario)


@pytest.mark.slow
@pytest.mark.parametrize("profile", ["all", "unclean"])
def test_a_right_client_withstands_many_seeds(tmp_path, profile):
    async def one(seed):
        schedule = drawn(seed, PROFILES[profile])
        path, unclean = str(tmp_path / str(seed)), profile == "unclean"
        made = await rehearse(path, schedule, small_client.work, is_unclean=unclean)
        assert made.findings == [], lanes(made)

    async def scenario():
        for first in range(0, 12, 4):
            await asyncio.gather(*(one(seed) for seed in range(first, first + 4)))

    asyncio.run(scenario())


@pytest.mark.slow
@pytest.mark.parametrize(("flaw", "rule"), small_client.FLAWS.items())
def test_a_flaw_is_found_and_shrunk(tmp_path, flaw, rule):
    async def scenario():
        client = partial(small_client.work, flaw=flaw)
        unclean = flaw == "epochs ignored"
        acts = PROFILES["unclean" if unclean else "all"]
        for seed in range(MOST_SEEDS):
            path = str(tmp_path / str(seed))
            made = await rehearse(path, drawn(seed, acts), client, is_unclean=unclean)
            if made.findings:
                break
        assert rule in {finding.rule for finding in made.findings}
        least = await shrunk(path, made, client, is_unclean=unclean)
        assert 1 <= len(least.done) <= MOST_EVENTS, least.done

    asyncio.run(scenario())


@pytest.mark.slow
def test_the_fixture_fails_a_test_whose_client_is_wrong(replog_cluster):
    def wrong():
        with replog_cluster("network:1") as cluster:
            cluster.say("sent x")
            cluster.say("acked x")

    with pytest.raises(pytest.fail.Exception, match=r"client\nsent x\nacked x\nlost: x was acknowledged"):
        wrong()
    with replog_cluster("network:1") as cluster:
        client = small_client.work(cluster.servers, cluster.say, rounds=1)
        asyncio.run(client)


@pytest.mark.slow
def test_a_program_is_judged_by_its_lines(tmp_path):
    async def scenario():
        ended = await rehearse(
            str(tmp_path / "a"),
            listed(()),
            # A long line is one too.
            program((sys.executable, "-c", "print('x' * 100_000); print('acked x'); exit(3)")),
        )
        assert [str(finding) for finding in ended.findings] == [
            "ended: the client ended with exit code 3",
            "lost: x was acknowledged, and is not in the log",
        ]

    run(scenario)
    assert not list(Path(tmp_path).glob("*.ndjson"))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["7", "--min-isr", "1"], "--adversary runs three brokers in one process: leave out --min-isr"),
        (["7", "--brokers", "3", "--record", "lines"], "leave out --brokers, --record"),
        (["7", "--", "no-such-client"], "no program `no-such-client`"),
    ],
)
def test_what_an_opponent_would_ignore_is_refused(words, says, tmp_path, capsys):
    """Before a cluster is started."""
    assert run_command(["cluster", str(tmp_path / "all"), "--adversary", *words]) == 2
    assert says in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "all").exists()
