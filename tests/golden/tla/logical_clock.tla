---- MODULE M ----
\* logical_clock, model two: written by `specchk export-tla` from spec/examples/logical_clock.spec.
\* Horizon = 3
\* Flight = 2
\* jumps = true
\* Note: to see that `far_apart` is reached, check the invariant far_apart_is_never_reached, which must be violated
EXTENDS Integers, Sequences, FiniteSets, TLC, Bags

Max(m, n) == IF n > m THEN n ELSE m

CONSTANTS
    \* @type: Str;
    p1,
    \* @type: Str;
    p2

Process == {p1, p2}

VARIABLES
    \* @type: (Str -> Int);
    clock,
    \* @type: ({ sent: Int, to: Str } -> Int);
    flight,
    \* @type: Bool;
    late

vars == <<clock, flight, late>>

Init == clock = [p \in Process |-> 0] /\ flight = EmptyBag /\ late = FALSE

work(p) == clock' = [clock EXCEPT ![p] = clock[p] + 1] /\ UNCHANGED <<flight, late>>

send(p, to) ==
    /\ p # to
    /\ BagCardinality(flight) < 2
    /\ clock' = [clock EXCEPT ![p] = clock[p] + 1]
    /\ flight' = flight (+) SetToBag({[sent |-> clock[p] + 1, to |-> to]})
    /\ UNCHANGED late

receive ==
    \E m \in BagToSet(flight) :
        LET time == Max(clock[m.to], m.sent) + 1
        IN  /\ clock' = [clock EXCEPT ![m.to] = time]
            /\ flight' = flight (-) SetToBag({m})
            /\ late' = (late \/ time <= m.sent)

\* A step above a horizon is not taken.
InHorizon ==
    (\A k \in DOMAIN clock : clock[k] <= 3) /\ (\A x \in DOMAIN flight : x.sent <= 3)

Next ==
    \/ \E p \in Process : work(p) /\ InHorizon'
    \/ \E p \in Process, to \in Process : send(p, to) /\ InHorizon'
    \/ receive /\ InHorizon'

Spec == Init /\ [][Next]_vars

\* A value outside its declared range is undefined in the spec.
TypeOK ==
    /\ clock \in [Process -> 0..3]
    /\ /\ BagCardinality(flight) <= 2
       /\ \A x \in DOMAIN flight : x \in [sent: 0..3, to: Process]
    /\ late \in BOOLEAN

causes_come_first == ~late

clocks_advance == [][\A p \in Process : clock[p] <= clock'[p]]_vars

far_apart_is_never_reached ==
    ~(\E p \in Process : \E q \in Process : clock[p] = 0 /\ clock[q] = 3)

Symmetry == Permutations(Process)
====

SPECIFICATION Spec
CONSTANTS
    p1 = p1
    p2 = p2
INVARIANTS
    TypeOK
    causes_come_first
PROPERTIES
    clocks_advance
SYMMETRY Symmetry
CHECK_DEADLOCK FALSE
