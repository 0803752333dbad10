---- MODULE M ----
\* two_phase_transaction, model three: written by `specchk export-tla` from spec/examples/two_phase_transaction.spec.
\* hasty = false
\* Note: to see that `all_commit` is reached, check the invariant all_commit_is_never_reached, which must be violated
\* Note: to see that `all_abort` is reached, check the invariant all_abort_is_never_reached, which must be violated
EXTENDS Integers, Sequences, FiniteSets, TLC, Variants

CONSTANTS
    \* @type: Str;
    p1,
    \* @type: Str;
    p2,
    \* @type: Str;
    p3

Participant == {p1, p2, p3}
State == {"working", "prepared", "committed", "aborted"}
Outcome == {"undecided", "commit", "abort"}

VARIABLES
    \* @type: (Str -> Str);
    state,
    \* @type: Set(Str);
    heard,
    \* @type: Str;
    decision,
    \* @type: Set(Prepared({ from: Str }) | Commit(UNIT) | Abort(UNIT));
    sent

vars == <<state, heard, decision, sent>>

Init ==
    /\ state = [p \in Participant |-> "working"]
    /\ heard = {}
    /\ decision = "undecided"
    /\ sent = {}

prepare(p) ==
    /\ state[p] = "working"
    /\ state' = [state EXCEPT ![p] = "prepared"]
    /\ sent' = sent \union {Variant("Prepared", [from |-> p])}
    /\ UNCHANGED <<heard, decision>>

give_up(p) ==
    /\ state[p] = "working"
    /\ state' = [state EXCEPT ![p] = "aborted"]
    /\ UNCHANGED <<heard, decision, sent>>

hear(p) ==
    /\ decision = "undecided"
    /\ Variant("Prepared", [from |-> p]) \in sent
    /\ heard' = heard \union {p}
    /\ UNCHANGED <<state, decision, sent>>

decide_commit ==
    /\ decision = "undecided"
    /\ heard = Participant
    /\ decision' = "commit"
    /\ sent' = sent \union {Variant("Commit", UNIT)}
    /\ UNCHANGED <<state, heard>>

decide_abort ==
    /\ decision = "undecided"
    /\ decision' = "abort"
    /\ sent' = sent \union {Variant("Abort", UNIT)}
    /\ UNCHANGED <<state, heard>>

obey(p) ==
    \E message \in sent :
        /\ ~(VariantTag(message) = "Prepared")
        /\ state'
             = [state EXCEPT ![p] = IF VariantTag(message) = "Commit" THEN "committed" ELSE "aborted"]
        /\ UNCHANGED <<heard, decision, sent>>

Next ==
    \/ \E p \in Participant : prepare(p)
    \/ \E p \in Participant : give_up(p)
    \/ \E p \in Participant : hear(p)
    \/ decide_commit
    \/ decide_abort
    \/ \E p \in Participant : obey(p)

Spec == Init /\ [][Next]_vars

\* A value outside its declared range is undefined in the spec.
TypeOK ==
    /\ state \in [Participant -> State]
    /\ heard \in SUBSET Participant
    /\ decision \in Outcome
    /\ \A x \in sent :
           VariantTag(x) = "Prepared" => VariantGetUnsafe("Prepared", x).from \in Participant

consistent ==
    \A p \in Participant :
        \A q \in Participant : ~(state[p] = "committed" /\ state[q] = "aborted")

\* The variables of `transaction`, which this spec refines.
transaction_state ==
    [p \in Participant
     |-> IF state[p] = "working"
         THEN "working"
         ELSE IF state[p] = "prepared"
              THEN "prepared"
              ELSE IF state[p] = "committed" THEN "committed" ELSE "aborted"]

transaction_prepare(m) ==
    /\ transaction_state[m] = "working"
    /\ transaction_state' = [transaction_state EXCEPT ![m] = "prepared"]

transaction_commit(m) ==
    /\ transaction_state[m] = "prepared"
    /\ \A n \in Participant : transaction_state[n] \in {"prepared", "committed"}
    /\ transaction_state' = [transaction_state EXCEPT ![m] = "committed"]

transaction_abort(m) ==
    /\ transaction_state[m] \in {"working", "prepared"}
    /\ \A n \in Participant : transaction_state[n] # "committed"
    /\ transaction_state' = [transaction_state EXCEPT ![m] = "aborted"]

transaction_Init ==
    LET state_2 == [p \in Participant
                    |-> IF state[p] = "working"
                        THEN "working"
                        ELSE IF state[p] = "prepared"
                             THEN "prepared"
                             ELSE IF state[p] = "committed" THEN "committed" ELSE "aborted"]
    IN  state_2 = [m \in Participant |-> "working"]

transaction_Next ==
    \/ \E m \in Participant : transaction_prepare(m)
    \/ \E m \in Participant : transaction_commit(m)
    \/ \E m \in Participant : transaction_abort(m)

transaction_vars == <<transaction_state>>

transaction == transaction_Init /\ [][transaction_Next]_transaction_vars

all_commit_is_never_reached == ~(\A p \in Participant : state[p] = "committed")

all_abort_is_never_reached == ~(\A p \in Participant : state[p] = "aborted")

Symmetry == Permutations(Participant)
====

SPECIFICATION Spec
CONSTANTS
    p1 = p1
    p2 = p2
    p3 = p3
INVARIANTS
    TypeOK
    consistent
PROPERTIES
    transaction
SYMMETRY Symmetry
CHECK_DEADLOCK FALSE
