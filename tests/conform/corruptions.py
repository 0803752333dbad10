"""Forty-five lies that a recording of replog may tell, each consistent in itself: every place where one fits.

They differ from `conform.recordings.corrupt` in kind: there a line is changed, dropped, exchanged or
duplicated at random; here a whole story is told wrong, in all of the lines that have a part in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

Lines = list[dict[str, Any]]
Lie = Callable[[Lines], Iterator[Lines]]
CONTROLLER = -1
LIES: dict[str, Lie] = {}


def lie(function: Lie) -> Lie:
    """Add a lie to the list; its name says what is told."""
    LIES[function.__name__] = function
    return function


def places(
    lines: Lines, event: str, when: Callable[[dict[str, Any]], Any] = lambda _: True
) -> Iterator[tuple[int, Lines]]:
    """The index of each event of a name, with a copy of all lines to change."""
    for at, line in enumerate(lines):
        if line["event"] == event and when(line):
            yield at, deepcopy(lines)


def later(lines: Lines, at: int, *events: str) -> Iterator[dict[str, Any]]:
    """What the writer of a line shows from there on, until one of these events (or the end of its life)."""
    who = lines[at]["at"]
    for number, line in enumerate(lines[at:]):
        if line["at"] == who:
            if number and line["event"] in (*events, "crash", "power-loss"):
                return
            if line.get("after"):
                yield line["after"]


def before(lines: Lines, at: int, who: int) -> dict[str, Any]:
    """What a writer showed last before a line."""
    return next(
        (line["after"] for line in reversed(lines[:at]) if line["at"] == who and line.get("after")), {}
    )


def index(lines: Lines, event: str, message: str) -> int | None:
    return next(
        (n for n, line in enumerate(lines) if line["event"] == event and line.get("message") == message), None
    )


def without(lines: Lines, *numbers: int) -> Lines:
    return [line for number, line in enumerate(lines) if number not in numbers]


# the five that issue 53 found


@lie
def it_answered_where_it_waited(lines: Lines) -> Iterator[Lines]:
    for at, wrong in places(lines, "serve", lambda one: one["reply"] == "waits"):
        wrong[at]["reply"] = "records"
        yield wrong


@lie
def it_waited_where_it_sent_records_that_nobody_takes(lines: Lines) -> Iterator[Lines]:
    for at, wrong in places(lines, "serve", lambda one: one["reply"] == "records"):
        if index(lines, "apply", wrong[at]["message"]) is None:
            wrong[at]["reply"] = "waits"
            yield wrong


@lie
def a_fetch_that_was_counted_went_to_another_broker(lines: Lines) -> Iterator[Lines]:
    for at, wrong in places(lines, "fetch"):
        if index(lines, "serve", wrong[at]["message"]) is not None:
            wrong[at]["to"] = 3 - wrong[at]["to"] - wrong[at]["at"]
            if 0 <= wrong[at]["to"] != lines[at]["to"]:
                yield wrong


@lie
def the_answer_came_from_another_broker(lines: Lines) -> Iterator[Lines]:
    for at, wrong in places(lines, "apply"):
        wrong[at]["source"] = (wrong[at]["source"] + 1) % 3
        yield wrong


@lie
def who_left_was_not_late(lines: Lines) -> Iterator[Lines]:
    for at, wrong in places(lines, "shrink"):
        wrong[at]["late"] = [one for one in wrong[at]["late"] if one not in wrong[at]["gone"]]
        yield wrong


# high watermarks


@lie
def hw_rose_with_the_append(lines: Lines) -> Iterator[Lines]:
    for at, wrong in places(lines, "produce", lambda one: len(one["after"]["isr"]) > 1):
        for shown in later(wrong, at, "serve", "settle", "lead", "follow"):
            shown["hw"] = shown["leo"]
        yield wrong


@lie
def hw_stood_still_at_a_serve(lines: Lines) -> Iterator[Lines]:
    for at, wrong in places(lines, "serve"):
        was = before(lines, at, lines[at]["at"]).get("hw")
        if was is not None and was < wrong[at]["after"]["hw"]:
            for shown in later(wrong, at, "serve", "produce", "settle", "lead", "follow"):
                shown["hw"] = was
            yield wrong


@lie
def hw_overtook_a_member_of_the_isr(lines: Lines) -> Iterator[Lines]:
    for at, wrong in places(lines, "serve"):
        after = wrong[at]["after"]
        remote = [leo for other, leo in after["remote"].items() if int(other) in after["isr"]]
        if remote and after["hw"] == min(remote) < after["leo"]:
            for shown in later(wrong, at, "serve", "produce", "settle", "lead", "follow"):
                shown["hw"] += 1
            yield wrong


@lie
def a_follower_took_a_later_hw(lines: Lines) -> Iterator[Lines]:
    for at, wrong in places(lines, "apply", lambda one: one["after"]["hw"] < one["after"]["leo"]):
        for shown in later(wrong, at, "apply", "follow", "lead"):
            shown["hw"] = min(shown["hw"] + 1, shown["leo"])
        yield wrong


@lie
def a_follower_kept_its_hw(lines: Lines) -> Iterator[Lines]:
    for at, wrong in places(lines, "apply"):
        was = before(lines, at, lines[at]["at"]).get("hw")
        if was is not None and was != wrong[at]["after"]["hw"] and was <= wrong[at]["after"]["leo"]:
            for shown in later(wrong, at, "apply", "follow", "lead"):
                shown["hw"] = was
            yield wrong


@lie
def hw_was_kept_through_a_power_loss(lines: Lines) -> Iterator[Lines]:
    for at, _ in places(lines, "register"):
        who = lines[at]["broker"]
        down = next((n for n in range(at, -1, -1) if lines[n]["at"] == who and not lines[n]["after"]), None)
        up = next((n for n in range(at, len(lines)) if lines[n]["at"] == who and lines[n].get("after")), None)
        hw = before(lines, down or 0, who).get("hw")
        if up is not None and hw is not None and lines[up]["after"]["hw"] < hw <= lines[up]["after"]["leo"]:
            wrong = deepcopy(lines)
            for shown in later(wrong, up, "apply", "lead", "serve"):
                shown["hw"] = hw
            yield wrong


# logs


@lie
def one_answer_had_two_records(lines: Lines) -> Iterator[Lines]:
    for at, wrong in places(lines, "apply"):
        was = before(lines, at, lines[at]["at"])
        if was.get("leo") == wrong[at]["after"]["leo"] - 1:
            for shown in later(wrong, at, "apply", "follow", "lead", "fetch"):
                shown["leo"] += 1
            yield wrong


@lie
def an_answer_s_record_was_not_appended(lines: Lines) -> Iterator[Lines]:
    for at, wrong in places(lines, "apply"):
        was = before(lines, at, lines[at]["at"])
        if was.get("leo") == wrong[at]["after"]["leo"] - 1:
            for shown in later(wrong, at, "apply", "follow", "lead"):
                shown.update({name: was[name] for name in ("leo", "crc", "epochs")})
                shown["hw"] = min(shown["hw"], shown["leo"])
            yield wrong


@lie
def a_truncation_was_left_out(lines: Lines) -> Iterator[Lines]:
    for at, wrong in places(lines, "apply"):
        was = before(lines, at, lines[at]["at"])
        if was and was["leo"] > wrong[at]["after"]["leo"]:
            for shown in later(wrong, at, "apply", "follow", "lead"):
                shown.update({name: was[name] for name in ("leo", "crc", "epochs")})
            yield wrong


@lie
def a_truncation_cut_one_more(lines: Lines) -> Iterator[Lines]:
    for at, wrong in places(lines, "apply"):
        was, now = before(lines, at, lines[at]["at"]), wrong[at]["after"]
        if was and was["leo"] > now["leo"] > 0:
            for shown in later(wrong, at, "apply", "follow", "lead"):
                shown["leo"] -= 1
                shown["hw"], shown["flushed"] = (
                    min(shown["hw"], shown["leo"]),
                    min(shown["flushed"], shown["leo"]),
                )
                shown["epochs"] = [entry for entry in shown["epochs"] if entry[1] < shown["leo"]]
                del shown["crc"]
            yield wrong


@lie
def a_batch_of_two_counted_as_one(lines: Lines) -> Iterator[Lines]:
    for at, wrong in places(lines, "produce"):
        wrong[at]["count"] = 2
        yield wrong


@lie
def a_leader_s_epoch_has_no_entry(lines: Lines) -> Iterator[Lines]:
    for at, wrong in places(lines, "lead"):
        epoch, any_ = wrong[at]["after"]["epoch"], False
        for shown in later(wrong, at, "follow", "lead"):
            any_ = any_ or [epoch, shown["leo"]] in shown["epochs"]
            shown["epochs"] = [entry for entry in shown["epochs"] if entry[0] != epoch]
        if any_:
            yield wrong


@lie
def an_epoch_starts_one_later(lines: Lines) -> Iterator[Lines]:
    for at, wrong in places(lines, "produce"):
        entries = wrong[at]["after"]["epochs"]
        if len(entries) > 1 and entries[-1][1] == wrong[at]["after"]["leo"] - 1:
            for shown in later(wrong, at, "follow", "lead"):
                shown["epochs"][-1][1] += 1
            yield wrong


@lie
def a_replica_has_other_records_at_the_same_places(lines: Lines) -> Iterator[Lines]:
    for at, wrong in places(lines, "apply", lambda one: one["after"]["leo"]):
        if before(lines, at, lines[at]["at"]).get("leo") != wrong[at]["after"]["leo"]:
            for shown in later(wrong, at, "apply", "follow", "lead"):
                shown["crc"] ^= 1
            yield wrong


@lie
def records_were_flushed_without_a_flush(lines: Lines) -> Iterator[Lines]:
    for at, wrong in places(lines, "produce", lambda one: one["after"]["flushed"] < one["after"]["leo"]):
        for shown in later(wrong, at, "flush", "follow", "lead"):
            shown["flushed"] = max(shown["flushed"], lines[at]["after"]["leo"])
        yield wrong


@lie
def a_flush_left_records_out(lines: Lines) -> Iterator[Lines]:
    for at, wrong in places(lines, "flush"):
        was = before(lines, at, lines[at]["at"])
        if was and was["flushed"] < wrong[at]["after"]["flushed"]:
            for shown in later(wrong, at, "flush", "follow", "lead", "apply"):
                shown["flushed"] = was["flushed"]
            yield wrong


@lie
def a_power_loss_lost_nothing(lines: Lines) -> Iterator[Lines]:
    for at, _ in places(lines, "power-loss"):
        who = lines[at]["at"]
        was = before(lines, at, who)
        up = next(
            (n for n in range(at + 1, len(lines)) if lines[n]["at"] == who and lines[n].get("after")), None
        )
        if up is not None and was and lines[up]["after"]["leo"] < was["leo"]:
            wrong = deepcopy(lines)
            for shown in later(wrong, up, "apply", "follow", "lead"):
                shown.update({name: was[name] for name in ("leo", "crc", "epochs")})
            yield wrong


@lie
def the_checkpoint_was_not_written(lines: Lines) -> Iterator[Lines]:
    for at, wrong in places(lines, "checkpoint"):
        was = before(lines, at, lines[at]["at"]).get("checkpoint")
        if was is not None and was != wrong[at]["after"]["checkpoint"]:
            for shown in later(wrong, at, "checkpoint"):
                shown["checkpoint"] = was
            yield wrong


# messages


@lie
def a_number_is_used_twice(lines: Lines) -> Iterator[Lines]:
    for at, wrong in places(lines, "fetch"):
        earlier = next(
            (n for n in range(at) if lines[n]["event"] == "fetch" and lines[n]["at"] == lines[at]["at"]), None
        )
        if earlier is not None:
            old, new = wrong[at]["message"], wrong[earlier]["message"]
            for line in wrong[at:]:
                if line.get("message") == old:
                    line["message"] = new
            yield wrong


@lie
def two_followers_answers_are_exchanged(lines: Lines) -> Iterator[Lines]:
    for at, wrong in places(lines, "apply"):
        other = next(
            (
                n
                for n in range(at + 1, len(lines))
                if lines[n]["event"] == "apply" and lines[n]["at"] != lines[at]["at"]
            ),
            None,
        )
        if other is not None:
            wrong[at]["message"], wrong[other]["message"] = wrong[other]["message"], wrong[at]["message"]
            yield wrong


@lie
def an_older_answer_was_taken(lines: Lines) -> Iterator[Lines]:
    for at, wrong in places(lines, "apply"):
        old = [
            one["message"]
            for one in lines[:at]
            if one["event"] == "serve"
            and one["follower"] == lines[at]["at"]
            and index(lines, "apply", one["message"]) is None
            and one["message"] != lines[at]["message"]
        ]
        if old:
            wrong[at]["message"] = old[-1]
            yield wrong


@lie
def an_answer_was_taken_before_it_was_given(lines: Lines) -> Iterator[Lines]:
    for at, wrong in places(lines, "apply"):
        served = index(lines, "serve", wrong[at]["message"])
        if served is not None:
            wrong.insert(served, wrong.pop(at))
            yield wrong


@lie
def a_fetch_asked_for_an_earlier_record(lines: Lines) -> Iterator[Lines]:
    for at, wrong in places(lines, "fetch", lambda one: one["offset"]):
        served = index(lines, "serve", wrong[at]["message"])
        for number in (at, served):
            if number is not None:
                wrong[number]["offset"] -= 1
        yield wrong


@lie
def a_fetch_was_counted_that_nobody_sent(lines: Lines) -> Iterator[Lines]:
    for at, wrong in places(lines, "serve"):
        if index(lines, "apply", wrong[at]["message"]) is None:
            sent = index(lines, "fetch", wrong[at]["message"])
            yield without(wrong, *([] if sent is None else [sent]))


@lie
def an_answer_outlived_new_metadata(lines: Lines) -> Iterator[Lines]:
    for at, wrong in places(lines, "apply"):
        news = next((n for n in range(at + 1, len(lines)) if lines[n]["at"] == lines[at]["at"]), None)
        if (
            news is not None
            and lines[news]["event"] == "follow"
            and lines[news]["after"]["epoch"] != lines[at]["after"]["epoch"]
        ):
            moved = wrong.pop(at)
            moved["after"] = {**moved["after"], **{n: wrong[news - 1]["after"][n] for n in ("epoch", "role")}}
            wrong.insert(news, moved)
            yield wrong


@lie
def one_answer_was_taken_twice(lines: Lines) -> Iterator[Lines]:
    for at, wrong in places(lines, "apply"):
        wrong.insert(at + 1, deepcopy(wrong[at]))
        yield wrong


@lie
def records_were_applied_that_no_leader_had_sent(lines: Lines) -> Iterator[Lines]:
    for at, wrong in places(lines, "apply"):
        message = wrong[at]["message"]
        served, answered = index(lines, "serve", message), index(lines, "answer", message)
        if (
            served is not None
            and before(lines, at, lines[at]["at"]).get("leo", 0) < wrong[at]["after"]["leo"]
        ):
            yield without(wrong, served, *([] if answered is None else [answered]))


@lie
def a_waiting_fetch_was_answered_to_another(lines: Lines) -> Iterator[Lines]:
    for at, wrong in places(lines, "answer"):
        others = [int(other) for other in wrong[at]["after"]["remote"] if int(other) != wrong[at]["follower"]]
        if others:
            wrong[at]["follower"] = others[0]
            yield wrong


@lie
def a_remote_leo_ran_ahead_of_its_fetch(lines: Lines) -> Iterator[Lines]:
    for at, wrong in places(lines, "serve"):
        follower = str(wrong[at]["follower"])
        if 0 <= wrong[at]["after"]["remote"].get(follower, -1) < wrong[at]["after"]["leo"]:
            for shown in later(wrong, at, "serve", "lead", "follow"):
                shown["remote"][follower] += 1
            yield wrong


# the controller


@lie
def somebody_else_was_elected(lines: Lines) -> Iterator[Lines]:
    for at, wrong in places(lines, "elect"):
        others = [one for one in (0, 1, 2) if one != wrong[at]["broker"] and one in wrong[at]["after"]["isr"]]
        if others:
            wrong[at]["broker"] = wrong[at]["after"]["leader"] = others[0]
            yield wrong


@lie
def an_epoch_was_skipped(lines: Lines) -> Iterator[Lines]:
    for at, wrong in places(lines, "elect"):
        first = lines[at]["after"]["epoch"]
        for line in wrong[at:]:
            for place in (line, line.get("after") or {}):
                if isinstance(place.get("epoch"), int) and place["epoch"] >= first:
                    place["epoch"] += 1
                if "epochs" in place:
                    place["epochs"] = [[e + (e >= first), start] for e, start in place["epochs"]]
        yield wrong


@lie
def a_refusal_was_a_grant(lines: Lines) -> Iterator[Lines]:
    for at, wrong in places(lines, "judge", lambda one: one["verdict"] == "refused"):
        wrong[at]["verdict"] = "granted"
        yield wrong


@lie
def a_grant_changed_nothing(lines: Lines) -> Iterator[Lines]:
    for at, wrong in places(lines, "judge", lambda one: one["verdict"] == "granted"):
        was = before(lines, at, CONTROLLER)
        if was:
            wrong[at]["after"].update(isr=was["isr"], version=was["version"])
            yield wrong


@lie
def a_fenced_leader_went_on_leading(lines: Lines) -> Iterator[Lines]:
    for at, wrong in places(lines, "fence"):
        was = before(lines, at, CONTROLLER)
        if was and was.get("leader") == wrong[at]["broker"] != wrong[at]["after"].get("leader"):
            wrong[at]["after"].update({name: was[name] for name in ("leader", "epoch", "isr", "version")})
            yield wrong


@lie
def a_broker_came_back_without_the_controller(lines: Lines) -> Iterator[Lines]:
    for at, wrong in places(lines, "register"):
        yield without(wrong, at)


@lie
def a_proposal_was_judged_by_nobody(lines: Lines) -> Iterator[Lines]:
    for at, wrong in places(lines, "judge", lambda one: one["verdict"] == "granted"):
        leader = wrong[at]["leader"]
        if any(one["event"] == "settle" and one["at"] == leader for one in lines[at:]):
            yield without(wrong, at)


# the ISR, and who leads


@lie
def a_settled_isr_is_the_old_one(lines: Lines) -> Iterator[Lines]:
    for at, wrong in places(lines, "settle"):
        was = before(lines, at, lines[at]["at"])
        if was and was.get("isr") and was["isr"] != wrong[at]["after"]["isr"]:
            for shown in later(wrong, at, "shrink", "serve", "lead", "follow"):
                shown["isr"] = was["isr"]
            yield wrong


@lie
def a_leader_began_with_another_isr(lines: Lines) -> Iterator[Lines]:
    for at, wrong in places(lines, "lead", lambda one: len(one["after"]["isr"]) > 1):
        for shown in later(wrong, at, "settle", "lead", "follow", "serve"):
            shown["isr"] = [lines[at]["at"]]
        yield wrong


@lie
def a_follower_below_hw_was_proposed(lines: Lines) -> Iterator[Lines]:
    for at, wrong in places(lines, "serve", lambda one: one["after"].get("proposed") is None):
        after, follower = wrong[at]["after"], wrong[at]["follower"]
        if follower not in after["isr"] and wrong[at]["offset"] < after["hw"]:
            for shown in later(wrong, at, "serve", "shrink", "settle", "lead", "follow"):
                shown["proposed"] = sorted([*after["isr"], follower])
            yield wrong


@lie
def a_proposal_was_forgotten(lines: Lines) -> Iterator[Lines]:
    for at, wrong in places(lines, "shrink"):
        for shown in later(wrong, at, "settle", "lead", "follow"):
            shown["proposed"] = None
        yield wrong


@lie
def a_follower_wrote_records_of_its_own(lines: Lines) -> Iterator[Lines]:
    for at, wrong in places(lines, "produce"):
        followers = [
            n
            for n in range(at)
            if lines[n]["event"] in ("fetch", "apply") and lines[n]["at"] != lines[at]["at"]
        ]
        if (
            followers
            and len(before(lines, at, lines[followers[-1]]["at"]))
            and before(lines, at, lines[followers[-1]]["at"])["role"] == "follower"
        ):
            wrong[at]["at"] = lines[followers[-1]]["at"]
            shown = deepcopy(before(lines, at, wrong[at]["at"]))
            wrong[at]["after"] = {**shown, "leo": shown["leo"] + 1}
            del wrong[at]["after"]["crc"], wrong[at]["late"]
            yield wrong


@lie
def a_dead_broker_led_on(lines: Lines) -> Iterator[Lines]:
    for at, wrong in places(lines, "crash"):
        last = next((n for n in range(at - 1, -1, -1) if lines[n]["at"] == lines[at]["at"]), None)
        if last is not None and lines[last]["event"] in ("produce", "serve", "answer"):
            wrong.insert(at, wrong.pop(last))
            yield wrong
