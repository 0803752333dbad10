"""The members of a group: a generation begins when all have joined, and each has the leader's assignment."""

from replog.core.types import Error
from replog.run.serve import rebalance
from replog.run.serve.rebalance import ClassicGroup, Join, Phase

SESSION_MS, REBALANCE_MS = 10_000, 60_000


class Story:
    """A group whose generations are written when the story says so."""

    def __init__(self):
        self.writes = 0
        self.group = ClassicGroup(self._write)
        self.answers = {}
        self.now = 1_000

    def _write(self):
        self.writes += 1

    def join(self, name, member="", protocols=("range",), needs_id=False):
        request = Join(
            member,
            name,
            None,
            "consumer",
            tuple((p, name.encode()) for p in protocols),
            SESSION_MS,
            REBALANCE_MS,
            needs_id,
        )
        self.answers.pop(name, None)
        self.group.join(request, self.now, lambda answer: self.answers.__setitem__(name, answer))

    def written(self, error=0):
        self.writes -= 1
        self.group.written(self.group.generation + 1 if self.group.generation >= 0 else 1, error, self.now)

    def sync(self, name, assignments=None):
        answer = self.answers[name]
        given = {}
        self.group.sync(
            answer["member_id"], answer["generation_id"], assignments or {}, self.now, given.update
        )
        return given

    def beat(self, name):
        answer = self.answers[name]
        return self.group.heartbeat(answer["member_id"], answer["generation_id"], self.now)

    def id(self, name):
        return self.answers[name]["member_id"]

    def stable(self, *names):
        """Bring a group of these members together."""
        for name in names:
            self.join(name)
        self.written()
        leader = next(name for name in names if self.answers[name]["members"])
        plan = {self.id(name): name.encode() for name in names}
        self.sync(leader, plan)
        return leader


def test_all_members_get_one_generation_and_the_leaders_assignment():
    story = Story()
    story.join("a")
    story.join("b")
    assert (story.writes, story.answers) == (1, {}), "nobody is answered before the generation is in the log"
    story.written()
    assert {answer["generation_id"] for answer in story.answers.values()} == {1}
    assert [len(story.answers[name]["members"]) for name in "ab"] == [2, 0]
    assert story.sync("b") == {}, "the follower waits for the leader"
    plan = {story.id("a"): b"0", story.id("b"): b"1"}
    assert story.sync("a", plan)["assignment"] == b"0"
    assert story.sync("b")["assignment"] == b"1"
    assert [story.beat(name) for name in "ab"] == [0, 0]


def test_a_newcomer_makes_all_join_again():
    story = Story()
    story.stable("a")
    story.join("b")
    assert story.beat("a") == rebalance.REBALANCE_IN_PROGRESS
    assert story.writes == 0, "the first member has not joined again"
    story.join("a", story.id("a"))
    assert story.writes == 1
    story.written()
    assert {answer["generation_id"] for answer in story.answers.values()} == {2}


def test_a_member_that_does_not_join_again_is_left_out():
    story = Story()
    story.stable("a", "b")
    a = story.id("a")
    story.join("a", a, protocols=("range", "sticky"))
    for _ in range(12):
        story.now += SESSION_MS // 2
        story.group.heartbeat(story.id("b"), 1, story.now)
        story.group.expire(story.now)
    assert (list(story.group.members), story.writes) == ([a], 1)


def test_a_silent_member_is_removed_and_a_waiting_one_is_not():
    story = Story()
    story.stable("a", "b")
    story.now += SESSION_MS - 1
    assert story.beat("a") == 0
    story.now += 1
    story.group.expire(story.now)
    assert (list(story.group.members), story.group.phase) == ([story.id("a")], Phase.PREPARING)
    assert story.beat("b") == Error.UNKNOWN_MEMBER_ID


def test_a_leader_that_never_assigns_is_removed():
    story = Story()
    story.join("a")
    story.join("b")
    story.written()
    waiting = story.sync("b")
    for _ in range(2 * REBALANCE_MS // SESSION_MS + 1):
        story.now += SESSION_MS // 2
        story.beat("a")
        story.group.expire(story.now)
    assert waiting["error_code"] == rebalance.REBALANCE_IN_PROGRESS
    assert list(story.group.members) == [story.id("b")]


def test_a_client_of_the_new_kind_joins_with_the_id_that_it_is_given():
    story = Story()
    story.join("a", needs_id=True)
    assert story.answers["a"]["error_code"] == rebalance.MEMBER_ID_REQUIRED
    assert not story.group.members
    story.join("a", story.id("a"), needs_id=True)
    story.written()
    assert story.answers["a"]["generation_id"] == 1
    story.join("b", needs_id=True)
    story.now += SESSION_MS
    story.group.expire(story.now)
    assert not story.group.reserved
    story.join("c", "made-up")
    assert story.answers["c"]["error_code"] == Error.UNKNOWN_MEMBER_ID


def test_members_agree_on_a_protocol_that_all_have():
    story = Story()
    story.join("a", protocols=("range", "sticky"))
    story.join("b", protocols=("sticky", "range"))
    story.join("c", protocols=("sticky",))
    story.written()
    assert {answer["protocol_name"] for answer in story.answers.values()} == {"sticky"}
    story.join("d", protocols=("other",))
    assert story.answers["d"]["error_code"] == rebalance.INCONSISTENT_PROTOCOL
    story.join("d", protocols=())
    assert story.answers["d"]["error_code"] == rebalance.INCONSISTENT_PROTOCOL


def test_old_generations_and_strangers_are_refused():
    story = Story()
    story.stable("a")
    group, a = story.group, story.id("a")
    assert group.heartbeat(a, 0, story.now) == Error.ILLEGAL_GENERATION
    assert group.heartbeat("b", 1, story.now) == Error.UNKNOWN_MEMBER_ID
    assert group.leave("b", story.now) == Error.UNKNOWN_MEMBER_ID
    assert (group.leave(a, story.now), story.writes) == (0, 1)
    story.written()
    assert group.phase is Phase.EMPTY


def test_a_lost_answer_is_given_again_without_another_generation():
    story = Story()
    story.stable("a", "b")
    story.join("b", story.id("b"))
    assert (story.answers["b"]["generation_id"], story.writes) == (1, 0)


def test_a_generation_that_cannot_be_written_is_begun_again():
    story = Story()
    story.join("a", needs_id=False)
    story.written(Error.COORDINATOR_NOT_AVAILABLE)
    assert story.answers["a"]["error_code"] == Error.COORDINATOR_NOT_AVAILABLE
    story.join("a", story.id("a"))
    story.written()
    assert story.answers["a"]["generation_id"] == 1
