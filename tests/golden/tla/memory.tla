---- MODULE M ----
\* memory, model two: written by `specchk export-tla` from spec/examples/memory.spec.
\* any_processor = p1
EXTENDS Integers, Sequences, FiniteSets, TLC, Variants

\* An option is a sequence of at most one item.
\* @type: () => Seq(a);
None == <<>>

\* @type: a => Seq(a);
Some(item) == <<item>>

CONSTANTS
    \* @type: Str;
    p1,
    \* @type: Str;
    p2,
    \* @type: Str;
    a1,
    \* @type: Str;
    a2,
    \* @type: Str;
    a3,
    \* @type: Str;
    v1,
    \* @type: Str;
    v2

Processor == {p1, p2}
Address == {a1, a2, a3}
Value == {v1, v2}
Phase == {"ready", "busy", "done"}

VARIABLES
    \* @type: (Str -> Str);
    memory,
    \* @type: (Str -> Str);
    phase,
    \* @type: (Str -> Nothing(UNIT) | Read({ at: Str }) | Write({ at: Str, value: Str }) | Answer({ value: Str }));
    buffer,
    \* @type: { item: Nothing(UNIT) | Read({ at: Str }) | Write({ at: Str, value: Str }) | Answer({ value: Str }), of: Str };
    wire

vars == <<memory, phase, buffer, wire>>

Init ==
    /\ phase = [p \in Processor |-> "ready"]
    /\ buffer = [p \in Processor |-> Variant("Nothing", UNIT)]
    /\ wire = [item |-> Variant("Nothing", UNIT), of |-> p1]
    /\ TRUE
    /\ memory \in [Address -> Value]

request(p, item) ==
    /\ phase[p] = "ready"
    /\ VariantTag(item) = "Read" \/ VariantTag(item) = "Write"
    /\ phase' = [phase EXCEPT ![p] = "busy"]
    /\ buffer' = [buffer EXCEPT ![p] = item]
    /\ wire' = [item |-> item, of |-> p]
    /\ UNCHANGED memory

serve(p) ==
    IF phase[p] = "busy"
    THEN LET write == LET matched == buffer[p]
                      IN  IF VariantTag(matched) = "Write"
                          THEN LET w == VariantGetUnsafe("Write", matched) IN Some(w)
                          ELSE None
         IN  /\ IF write # None
                THEN /\ memory' = [memory EXCEPT ![write[1].at] = write[1].value]
                     /\ buffer' = [buffer EXCEPT ![p] = Variant("Nothing", UNIT)]
                ELSE /\ (LET matched == buffer[p]
                         IN  IF VariantTag(matched) = "Read"
                             THEN LET r == VariantGetUnsafe("Read", matched) IN Some(r)
                             ELSE None)
                          # None
                     /\ LET read == (LET matched == buffer[p]
                                     IN  IF VariantTag(matched) = "Read"
                                         THEN LET r == VariantGetUnsafe("Read", matched) IN Some(r)
                                         ELSE None)[1]
                        IN  /\ buffer' = [buffer EXCEPT ![p] = Variant("Answer", [value |-> memory[read.at]])]
                            /\ UNCHANGED memory
             /\ phase' = [phase EXCEPT ![p] = "done"]
             /\ UNCHANGED wire
    ELSE /\ phase[p] = "done"
         /\ phase' = [phase EXCEPT ![p] = "ready"]
         /\ wire' = [item |-> buffer[p], of |-> p]
         /\ UNCHANGED <<memory, buffer>>

Next ==
    \/ \E p \in Processor :
           \E item \in UNION {{Variant("Nothing", UNIT)},
                              {Variant("Read", x_) : x_ \in [at: Address]},
                              {Variant("Write", x_) : x_ \in [at: Address, value: Value]},
                              {Variant("Answer", x_) : x_ \in [value: Value]}} :
               request(p, item)
    \/ \E p \in Processor : serve(p)

Fairness ==
    /\ WF_vars(serve(p1))
    /\ WF_vars(serve(p2))

Spec == Init /\ [][Next]_vars /\ Fairness

\* A value outside its declared range is undefined in the spec.
TypeOK ==
    /\ memory \in [Address -> Value]
    /\ phase \in [Processor -> Phase]
    /\ \A k \in DOMAIN buffer :
           /\ VariantTag(buffer[k]) = "Read" => VariantGetUnsafe("Read", buffer[k]).at \in Address
           /\ VariantTag(buffer[k]) = "Write"
                => VariantGetUnsafe("Write", buffer[k]) \in [at: Address, value: Value]
           /\ VariantTag(buffer[k]) = "Answer"
                => VariantGetUnsafe("Answer", buffer[k]).value \in Value
    /\ /\ /\ VariantTag(wire.item) = "Read" => VariantGetUnsafe("Read", wire.item).at \in Address
          /\ VariantTag(wire.item) = "Write"
               => VariantGetUnsafe("Write", wire.item) \in [at: Address, value: Value]
          /\ VariantTag(wire.item) = "Answer"
               => VariantGetUnsafe("Answer", wire.item).value \in Value
       /\ wire.of \in Processor

served ==
    /\ (phase[p1] = "busy") ~> (phase[p1] = "ready")
    /\ (phase[p2] = "busy") ~> (phase[p2] = "ready")
====

SPECIFICATION Spec
CONSTANTS
    p1 = p1
    p2 = p2
    a1 = a1
    a2 = a2
    a3 = a3
    v1 = v1
    v2 = v2
INVARIANTS
    TypeOK
PROPERTIES
    served
CHECK_DEADLOCK TRUE
