"""Unions of sorts: the meaning of expressions, symmetry, files, and every engine on one spec."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

from agreement.both import differences, program_of, states_found
from agreement.random_specs import spec_with_maps
from specchk.conform.contract import values as contract
from specchk.export.columns import column_of
from specchk.ir.program import Program
from specchk.ir.types import Record, Sort, Union
from specchk.meaning import values
from specchk.meaning.values import universe
from specchk.report.itf import value_itf
from specchk.report.json import value_json
from specchk.report.read import Unreadable, value_from_itf, value_from_json
from specchk.search import reference
from specchk.search.budget import Budget
from specchk.search.engine import Options
from specchk.search.symmetry import Symmetry
from specchk.search.verdict import Holds
from specchk.symbolic.induction.prove import ProofOptions, prove

PARTIES = """\
spec parties
type Node = Client | Server
type Holder = Server | Nobody | Client
sort Client
sort Server
const boss : Node
var clients : set[Client] = {}
var owner : Node in Server
var holder : Holder = Nobody
var up : Node -> bool = { n: n in Client for n in Node }
var net : set[(Node, Node)] = {}
action join(c: Client):
    require card(clients) < 2
    clients' = clients union {c}
    holder' = c
action leave():
    let c = match holder { Client c: some(c), _: none } else skip
    clients' = clients - {c}
    holder' = match owner { Server s: s, Client _: Nobody }
action link(a: Node, b: Node):
    require a != b and (a in Client) != (b in Client) and card(clients) + card(net) == 0
    net' = net union {(a, b)}
action move():
    any (a, b) in net:
        net' = {}
        owner' = b
        up'[a] = a in clients or up[b]
action reset():
    require card(clients) < 2
    owner' in Server
    up' = { n: n == owner or n == boss or n in clients for n in Node }
invariant claims:
    forall n in Node: (n in Client) == (n is Client) and (n in Server) != (n is Client)
    clients subset Node and card(Node) == card(Client) + card(Server) and Node - Client == Server
    forall c in Client: (c in clients) == (exists n in Node: n == c and n in clients)
    forall c in Client, n in Node: (c == n) == (n == c) and (c != n) != (n == c)
    { n for n in Node if n in clients } == clients and clients == (filter n in Node: n in clients)
    card(Node - clients) == card(Node) - card(clients) and Node intersect Server == Server
    forall n in Node: match n { Client c: c in Client and n == c, Server s: s in Server and n == s }
    holder is Nobody or holder is Server or (match holder { Client c: c in clients, _: false })
    if boss in Client then boss is Client else boss in Server
    forall s in {boss, owner}: s in Node and some(s) != none
model free:
    Client = 3, Server = 1, boss = s1
model both:
    Client = 2, Server = 2, boss = c2
"""
LIMIT = Budget(max_states=10_000)
CLIENT, SERVER = Sort("Client", ("c1", "c2")), Sort("Server", ("s1",))
VARIANTS = (("Client", Record((("", CLIENT),))), ("Nobody", Record(())), ("Server", Record((("", SERVER),))))
HOLDER = Union("Holder", VARIANTS)


def orbits(program: Program) -> tuple[int, int]:
    """The classes of all states of a plain search, and the states of one with symmetry."""
    symmetry = Symmetry(program)
    found = {symmetry.canonical(state) for state in states_found(program)}
    options = Options(symmetry=True, keep_going=True)
    return len(found), reference.search(program, options).statistics.distinct


@pytest.mark.parametrize("model", ["free", "both"])
def test_claims_hold_in_the_reference_and_compiled(model: str, tmp_path: Path) -> None:
    """Elements are values of the union, sets of them are sets of it; both engines agree."""
    program = program_of(PARTIES, tmp_path, model)
    assert program is not None
    assert isinstance(reference.search(program, Options(keep_going=True)).verdict, Holds)
    for symmetry in (True, False):
        assert differences(program, symmetry=symmetry, keep_going=True, workers=2, limit=LIMIT) == {}


@pytest.mark.parametrize(("model", "renamings"), [("free", 6), ("both", 2)])
def test_elements_of_each_sort_are_renamed_apart(model: str, renamings: int, tmp_path: Path) -> None:
    """A constant fixes an element of one sort, and states that differ by others are one class."""
    program = program_of(PARTIES, tmp_path, model)
    assert program is not None
    assert Symmetry(program).order == renamings
    classes, representatives = orbits(program)
    assert classes == representatives < len(states_found(program))


@pytest.mark.parametrize("seed", range(8))
def test_random_counts_with_symmetry_are_those_of_the_classes(seed: int, tmp_path: Path) -> None:
    """On random specs the search with symmetry has one state for each class."""
    random = Random(9000 + seed)
    program = program_of(spec_with_maps(random), tmp_path)
    limit = Budget(max_states=400)
    if (
        program is None
        or differences(program, symmetry=True, keep_going=True, workers=1, limit=limit) is None
    ):
        return
    outcome = reference.search(program, Options(symmetry=False, keep_going=True, budget=limit))
    if isinstance(outcome.verdict, Holds):
        classes, representatives = orbits(program)
        assert classes == representatives


def test_values_are_read_as_they_were_written() -> None:
    """JSON, ITF, Python and Arrow have a form of each value, and no two values share one."""
    found = universe(HOLDER)
    assert [values.show(value, HOLDER) for value in found] == ["c1", "c2", "Nobody", "s1"]
    for value in found:
        assert value_from_json(value_json(value, HOLDER), HOLDER) == value
        assert value_from_itf(value_itf(value, HOLDER), HOLDER) == value
        assert contract.raw(contract.plain(value, HOLDER), HOLDER) == value
    column = pa.array([column_of(HOLDER).plain(value) for value in found], column_of(HOLDER).type)
    assert len({str(one) for one in column.to_pylist()}) == len(found)
    assert value_json(found[1], HOLDER) == value_itf(found[1], HOLDER) == "c2"


WRONG = ("c3", "Client", "Nobody", {"tag": "Client"}, {"tag": "Client", "": "c1"})


@pytest.mark.parametrize("data", WRONG, ids=repr)
def test_other_data_are_no_value(data: object) -> None:
    """A name that is not an element's, and a tag of a variant that is a sort, are refused."""
    with pytest.raises(Unreadable):
        value_from_json(data, HOLDER)
    with pytest.raises(contract.NotAValue):
        contract.raw(data, HOLDER)


def test_an_induction_proves_what_unions_of_sorts_promise(tmp_path: Path) -> None:
    """The encoding for Z3 has the elements of each sort, and tests of membership."""
    text = PARTIES[: PARTIES.index("invariant claims")] + (
        "invariant held: match holder { Client c: c in clients, _: true }\n"
        "invariant linked: forall (a, b) in net: (a in Client) != (b in Client)\n"
        "model m:\n    Client = 2, Server = 2, boss = s1\n    actions join, link, reset\n"
    )
    program = program_of(text, tmp_path)
    assert program is not None
    assert set(prove(program, ProofOptions()).proved) == {"held", "linked"}
