"""Random specs of message passing: sets, bags and maps over too many values for one bit each, anywhere.

Sequences of such values, folds, helper actions, operators as parameters and computed bounds are beside them.
"""

from __future__ import annotations

import re
from random import Random

HEAD = """spec sparse_spec
sort Node
type Kind = enum {{ask, yes, no}}
type Cell = {{ x: 0..3, y: 0..3 }}
type Message = {message}
type Wide = {wide}
var sent : set[Message] = {{}}
var old : set[Message] = {{}}
var seen : Node -> set[Message] = {{ q: {{}} for q in Node }}
var kept : set[Message]? = none
var parts : set[set[Cell]] = {{}}
var numbers : set[Wide] = {{{low}}}
var net : bag[Message] upto 4 = {{}}
var box : map[Wide, Message] = {{}}
var tally : map[Message, 0..3] = {{}}
var at : Node -> map[Cell, 0..3] = {{ q: {{}} for q in Node }}
var n : 0..3 = 0
var line : seq[Message] upto card(Node) + 1 = []
var votes : 0..card(Node) = 0
helper action enqueue(m: Message, most: 0..card(Node) + 1):
    require len(line) < most
    line' = append(line, m)
helper action count_to(many: int):
    when many > votes:
        votes' = min(many, card(Node))
    else:
        votes' = 0
def holds_in(s: set[Message], ok: (Message) => bool): bool = exists m in s: ok(m)
def terms(s: set[Message], add: (int, int) => int): int = fold({{ m.term for m in s }}, 0, add)
"""
RECORDS = (
    "{ from: Node, to: Node, kind: Kind, term: 0..3, at: 0..9 }",
    "{ from: Node, to: Node, kind: Kind, term: 0..3, at: -3..6, also: Node? }",
    "{ from: Node, to: Node, kind: Kind, term: 0..3, at: 0..1000000, log: seq[0..1] upto 2 }",
    "{ from: Node, to: Node, kind: Kind, term: 0..3, at: 0..2, who: set[Node], heard: set[0..4] }",
)
EXTRA = {"also": ("none", "some(a)"), "log": ("[]", "[1]", "[0, 1]"), "who": ("{}", "{a}", "Node"),
         "heard": ("{}", "{n}", "{0, 4}", "{4}")}  # fmt: skip


class SparseWriter:
    """Writes the parts of one spec."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.record = random.choice(RECORDS)

    def pick(self, *choices: str) -> str:
        return self.random.choice(choices)

    def message(self, a: str = "a", b: str = "b") -> str:
        """A message from `a`, the rest of which is given."""
        fields = {"from": a, "to": b, "kind": self.pick("ask", "yes", "no"), "term": self.pick("0", "1", "n"),
                  "at": self.pick("0", "1", "2", "n", "2 - n")}  # fmt: skip
        fields["at"] = f"max(0, min(2, {fields['at']}))"
        for name, values in EXTRA.items():
            if f"{name}:" in self.record:
                fields[name] = self.pick(*values).replace("some(a)", f"some({a})").replace("{a}", f"{{{a}}}")
        return "{ " + ", ".join(f"{name}: {value}" for name, value in fields.items()) + " }"

    def claim(self, m: str) -> str:
        """A predicate about a message."""
        claims = [f"{m}.kind == {self.pick('ask', 'yes', 'no')}", f"{m}.term {self.pick('<', '==', '>')} n",
                  f"{m}.from != {m}.to", f"{m}.at <= {self.pick('0', '1', 'n')}",
                  f"{m} in {self.pick('old', 'sent', 'seen[m.to]', 'seen[m.from]')}".replace("m.", f"{m}."),
                  f"{m}.term + {m}.at > n"]  # fmt: skip
        if self.random.random() < 0.05:
            return f"1 // ({m}.term - n) >= 0"
        if self.random.random() < 0.03:
            return f"tally[{m}] > n"
        if self.random.random() < 0.3:
            claims = [f"count(net, {m}) {self.pick('>', '==')} n", f"{m} {self.pick('in', 'not in')} tally",
                      f"get(tally, {m}, {self.pick('0', 'n')}) {self.pick('>', '==')} 1",
                      f"{m} in net"]  # fmt: skip
        if "who:" in self.record:
            claims += [f"{m}.from in {m}.who", f"card({m}.heard) > n"]
        return self.random.choice(claims)

    def messages(self, depth: int = 2) -> str:
        """A set of messages."""
        leaves = ["sent", "old", "(old - sent)", "get(kept, old)", "union_of", "seen[first_one]"]
        if self.random.random() < 0.4:
            return self.pick("elements(net)", "keys(tally)", "{ box[k] for k in box }",
                             "{ m for m in tally if tally[m] > 0 }",
                             "{ m for m in net if m.term < 2 }")  # fmt: skip
        if depth == 0 or self.random.random() < 0.3:
            return self.random.choice(leaves).replace("union_of", "(sent union old)").replace(
                "seen[first_one]", "{ m for m in seen[a] if m.term <= n }"
            )  # fmt: skip
        form = self.random.randrange(7)
        left, right = self.messages(depth - 1), self.messages(depth - 1)
        if form < 3:
            return f"({left} {self.pick('union', 'intersect', '-')} {right})"
        if form == 3:
            return f"({left} {self.pick('union', '-')} {{{self.message()}}})"
        if form == 4:
            return f"{{ m for m in {left} if {self.claim('m')} }}"
        if form == 5:
            return f"{{ {{ m with term: {self.pick('0', 'n', '3 - m.term')} }} for m in {left} }}"
        return f"{{ {self.message('a', 'o')} for o in Node }}"

    def truth(self, depth: int = 2) -> str:
        """A predicate about the state; `a` and `b` are nodes."""
        left, right = self.messages(1), self.messages(1)
        some = self.pick("forall", "exists")
        forms = (
            f"({some} m in {left}: {self.claim('m')})",
            f"{left} {self.pick('==', '!=', 'subset')} {right}",
            f"card({left}) {self.pick('<=', '==', '>')} {self.pick('0', '1', '2')}",
            f"{self.message()} in {left}",
            f"(exists t in {{ m.term for m in {left} }}: t > n)",
            f"sum(m.at for m in {left}) <= {self.pick('1', '3')}",
            f"({some} p in parts: card(p) > n)",
            f"(numbers != {{}} and {self.pick('min', 'max')}(numbers) <= {self.pick('0', '500', '900')})",
            f"sum(x for x in numbers if x < 900) {self.pick('<', '>')} 700",
            f"({self.pick('kept == none', 'kept == some(sent)')})",
        )
        if self.record == RECORDS[0]:  # an item of a set of sets is one word of 64 bits
            forms += (f"(forall s in {{ {left}, {right} }}: card(s) < 3)",)
        if self.random.random() < 0.4:
            cell = "{ x: n, y: 1 }"
            forms = (
                f"card(net) {self.pick('>', '==')} {self.pick('n', '1', '2')}",
                f"({some} k in box: {self.claim('box[k]')})",
                f"keys(tally) {self.pick('subset', '==')} {left}",
                f"({some} m in {self.pick('net', 'tally')}: {self.claim('m')})",
                f"(box {self.pick('==', '!=')} {self.pick('{}', '{ n + 5: ' + self.message() + ' }')})",
                f"(net == {{{self.message()}}} or net == add({{}}, {self.message()}))",
                f"(at[a] == at[b] or {cell} in at[{self.pick('a', 'b')}])",
                f"sum(tally[m] for m in tally) {self.pick('<', '>')} n",
                "card(box) == card({ box[k] for k in box })",
            )
        elif self.random.random() < 0.4:
            forms = (
                f"fold(line, n, (acc, m) => (2 * acc + m.term) % 4) {self.pick('<', '==', '!=')} 1",
                f"terms({left}, (acc, t) => (3 * acc + t) % 5) {self.pick('>', '==')} {self.pick('n', '1')}",
                f"holds_in({left}, (m) => {self.claim('m')})",
                f"(line != [] and {self.claim('line[0]')})",
                f"(exists i in 0..len(line) - 1: {self.claim('line[i]')})",
                f"elements(line) {self.pick('subset', '!=', '==')} {right}",
                f"votes {self.pick('<', '>=')} card({left})",
                "fold(Node, 0, (acc, x) => min(9, acc + card(seen[x]))) <= n",
            )
        if self.random.random() < 0.05:
            return f"(choose m in {left}: {self.claim('m')}).term == n"
        made = self.random.choice(forms)
        return made if depth == 0 or self.random.random() < 0.5 else f"({made} or {self.truth(depth - 1)})"

    def changes(self) -> list[str]:
        """Assignments of an action with nodes `a` and `b`."""
        cell = f"{{ x: {self.pick('0', 'n')}, y: {self.pick('0', '1', '3')} }}"
        more = self.pick("(5..n + 5)", "{n + 5, 7}")
        moved = self.pick("x + 1", "x + n", "999 - x")
        forms = [
            f"sent' = {self.messages()}",
            f"old' = {self.pick('sent', 'old', 'sent union old')}",
            f"seen'[a] = {self.messages(1)}",
            f"kept' = {self.pick('none', 'some(sent)', f'some({self.messages(1)})')}",
            f"parts' = parts {self.pick('union', '-')} {{{{{cell}}}}}",
            f"parts' = {{ p union {{{cell}}} for p in parts }} union {{{{}}}}",
            f"numbers' = {{ {moved} for x in numbers if 0 <= x and x < 900 }}",
            f"numbers' = (numbers union {more}) - {self.pick('{0}', '(1..3)', '{}')}",
            f"n' = {self.pick('(n + 1) % 4', 'min(3, card(sent))', '0')}",
        ]
        given, wide, mine = self.message(), self.pick("n + 5", "7", "900 - n"), self.messages(1)
        forms += [
            f"net' = {self.pick(f'add(net, {given})', f'net union {{{given}, {self.message()}}}')}",
            f"net' = {self.pick('{}', f'{{{given}}}')}",
            f"net' = (if {given} in net then remove(net, {given}) else net)",
            f"box' = {{ box with [{wide}]: {given} }}",
            f"box' = {self.pick('{}', '{ k: { box[k] with term: n } for k in box }')}",
            f"box' = {{ k: box[k] for k in keys(box) - {{{wide}}} }}",
            f"tally'[{given}] = min(3, get(tally, {self.pick(given, self.message())}, 0) + 1)",
            f"tally' = {{ m: {self.pick('m.term', 'n')} for m in {mine} }}",
            f"tally' = {{ m: tally[m] for m in keys(tally) {self.pick('-', 'intersect')} {mine} }}",
            f"tally' = (if {given} in tally then remove(tally, {given}) else tally)",
            f"at'[a] = {{ at[{self.pick('a', 'b')}] with [{cell}]: n }}",
            f"at'[a][{cell}] = min(3, get(at[b], {cell}, 0) + 1)",
            f"line' = {self.pick('[]', 'suffix(line, min(1, len(line)))', 'prefix(line, len(line) // 2)')}",
            f"line' = {self.pick(f'[{given}] ++ prefix(line, min(2, len(line)))', f'[{given}]')}",
            f"sent' = fold(line, sent, (acc, m) => acc {self.pick('union', '-')} {{m}})",
            f"votes' = min(card(Node), {self.pick('votes + 1', f'card({mine})')})",
        ]
        taken: dict[str, str] = {}
        for form in self.random.sample(forms, self.random.randint(1, 3)):
            taken.setdefault(form.split("'")[0], form)
        return list(taken.values())

    def action(self, index: int) -> list[str]:
        """One action, of one node or two: it is compiled for each of them."""
        lines = self.steps(index)
        return lines if self.random.random() < 0.4 else of_one_node(lines)

    def steps(self, index: int) -> list[str]:
        """An action of two nodes; small sets in, small sets out."""
        lines = [f"action act{index}(a: Node, b: Node):", "    require card(sent) < 3 and card(old) < 3"]
        lines.append("    require card(parts) < 3 and card(numbers) < 4")
        lines.append("    require card(net) < 3 and card(box) < 3 and card(tally) < 3")
        if index == 0:
            return [*lines, f"    sent' = sent union {{{self.message()}}}", "    n' = min(3, n + 1)"]
        if self.random.random() < 0.3:
            lines.append(f"    require {self.truth(1)}")
        if self.random.random() < 0.5:
            return [*lines, *(f"    {line}" for line in self.changes())]
        if self.random.random() < 0.25:
            most, many = self.pick("2", "card(Node)", "votes"), self.pick("n", f"card({self.messages(1)})")
            return [*lines, f"    enqueue({self.message()}, {most})", f"    count_to({many})"]
        domain, claim = self.messages(1), self.claim("m")
        if self.random.random() < 0.3:
            lines += [
                "    any m in net:",
                "        net' = remove(net, m)",
                f"        tally'[m] = {self.pick('n', 'm.term')}",
            ]
            return lines
        lines += [f"    any m in {domain}:", f"        require {claim}"]
        lines.append(f"        sent' = (sent - {{m}}) union {{{self.message('m.to', 'm.from')}}}")
        return lines


def of_one_node(lines: list[str]) -> list[str]:
    """Lines about the nodes `a` and `b`, with one node for both."""
    one = [line.replace(", b: Node", "").replace(" forall b in Node:", "") for line in lines]
    return [re.sub(r"\bb\b", "a", line) for line in one]


def random_sparse_spec(random: Random) -> str:
    """A spec with one model `m`; its sets contain few of the many values of their types."""
    writer = SparseWriter(random)
    low = random.choice(("0", "-1000000000", "5"))
    high = 4_000_000_000 if low == "0" else 999
    head = HEAD.format(message=writer.record, wide=f"{low}..{high}", low=low)
    lines = [head.rstrip()]
    for index in range(random.randint(2, 3)):
        lines += writer.action(index)
    for index in range(random.randint(0, 2)):
        claim = [f"invariant inv{index}: forall a in Node: forall b in Node: {writer.truth()}"]
        lines += claim if random.random() < 0.4 else of_one_node(claim)
    lines.append(f"reachable wit: exists a in Node: let b = a: {writer.truth(1)}")
    if random.random() < 0.4:
        lines.append("constraint con: card(sent) + card(old) < 4")
    lines.append("deadlock ok")
    return "\n".join([*lines, "model m:", f"    Node = {random.choice((1, 2, 2, 2, 2, 3))}", ""])
