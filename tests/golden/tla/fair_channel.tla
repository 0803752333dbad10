---- MODULE M ----
\* fair_channel, model strong: written by `specchk export-tla` from spec/examples/fair_channel.spec.
EXTENDS Integers, Sequences, FiniteSets, TLC

\* An option is a sequence of at most one item.
\* @type: () => Seq(a);
None == <<>>

\* @type: a => Seq(a);
Some(item) == <<item>>

\* @type: Set(a) => Set(Seq(a));
OptionOf(S) == {None} \union {Some(item) : item \in S}

VARIABLES
    \* @type: Int;
    sent,
    \* @type: Int;
    expected,
    \* @type: Seq(Int);
    message,
    \* @type: Seq(Int);
    answer

vars == <<sent, expected, message, answer>>

Init == sent = 0 /\ expected = 0 /\ message = None /\ answer = None

send == message = None /\ message' = Some(sent) /\ UNCHANGED <<sent, expected, answer>>

lose_message ==
    message # None /\ message' = None /\ UNCHANGED <<sent, expected, answer>>

lose_answer == answer # None /\ answer' = None /\ UNCHANGED <<sent, expected, message>>

receive ==
    /\ message # None
    /\ LET bit == message[1]
       IN  /\ IF bit = expected THEN expected' = 1 - expected ELSE UNCHANGED expected
           /\ message' = None
           /\ answer' = Some(bit)
           /\ UNCHANGED sent

receive_answer ==
    /\ answer # None
    /\ LET bit == answer[1]
       IN  /\ IF bit = sent THEN sent' = 1 - sent ELSE UNCHANGED sent
           /\ answer' = None
           /\ UNCHANGED <<expected, message>>

Next ==
    \/ send
    \/ lose_message
    \/ lose_answer
    \/ receive
    \/ receive_answer

Fairness ==
    /\ WF_vars(send)
    /\ WF_vars(receive)
    /\ WF_vars(receive_answer)
    /\ SF_vars(receive)
    /\ SF_vars(receive_answer)

Spec == Init /\ [][Next]_vars /\ Fairness

\* A value outside its declared range is undefined in the spec.
TypeOK ==
    /\ sent \in 0..1
    /\ expected \in 0..1
    /\ message \in OptionOf(0..1)
    /\ answer \in OptionOf(0..1)

answers_follow_messages == answer = Some(sent) => expected # sent

delivered ==
    /\ (sent = 0) ~> (expected # 0)
    /\ (sent = 1) ~> (expected # 1)

acknowledged ==
    /\ (sent = 0) ~> (sent # 0)
    /\ (sent = 1) ~> (sent # 1)
====

SPECIFICATION Spec
INVARIANTS
    TypeOK
    answers_follow_messages
PROPERTIES
    delivered
    acknowledged
CHECK_DEADLOCK TRUE
