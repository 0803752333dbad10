---- MODULE M ----
\* forms, model (command line): written by `specchk export-tla` from tests/golden/tla/forms.spec.
EXTENDS Integers, Sequences, FiniteSets, TLC, Bags

Min(m, n) == IF n < m THEN n ELSE m

SetMax(S) == CHOOSE m \in S : \A n \in S : n <= m

\* The sum of the values of a function: natural numbers, counted, so that no recursion is needed.
\* @type: (a -> Int) => Int;
SumOf(f) == Cardinality(UNION {{x} \X (1..f[x]) : x \in DOMAIN f})

\* The sum of the values of a function, which may be negative.
\* @type: (a -> Int) => Int;
SumOfInts(f) ==
    Cardinality(UNION {{x} \X (1..f[x]) : x \in DOMAIN f})
      - Cardinality(UNION {{x} \X (1..(-f[x])) : x \in DOMAIN f})

\* A partial map is a set of pairs; these are the ones with just the keys S.
MapsOf(S, T) == {{[key |-> k, value |-> f[k]] : k \in S} : f \in [S -> T]}

VARIABLES
    \* @type: Seq(Int);
    queue,
    \* @type: Set({ key: Int, value: Int });
    m,
    \* @type: (Int -> Int);
    b,
    \* @type: <<Int, Bool>>;
    t

vars == <<queue, m, b, t>>

Init == queue = <<>> /\ m = {} /\ b = EmptyBag /\ t = <<0, FALSE>>

push(x) ==
    /\ Len(queue) < 2
    /\ queue' = Append(queue, x)
    /\ m'
         = {pair \in m : pair.key # x}
             \union {[key |-> x,
                      value |-> Min(2,
                                    (IF \E pair \in m : pair.key = x THEN (CHOOSE pair \in m : pair.key = x).value ELSE 0)
                                      + 1)]}
    /\ UNCHANGED <<b, t>>

drop ==
    /\ queue # <<>>
    /\ LET s == SumOf([k \in {pair.key : pair \in m} |-> (CHOOSE pair \in m : pair.key = k).value])
       IN  /\ queue' = Tail(queue)
           /\ b'
                = (IF BagCardinality(b) < 2
                   THEN b (+) SetToBag({Head(queue)})
                   ELSE b
                          (-) SetToBag({Head(LET items == BagToSet(b)
                                                 fold == IF 0 \in items THEN <<0>> ELSE <<>>
                                             IN  IF 1 \in items THEN Append(fold, 1) ELSE fold)}))
           /\ t'
                = <<s % 2,
                    \E p \in UNION {{<<x, y>> : y \in {y \in {0, 1} : x < y}} : x \in {0, 1}} :
                        Head(queue) \in {0, 1}>>
           /\ UNCHANGED m

swap ==
    /\ \/ Len(queue) = 2 /\ queue' = <<queue[2], queue[1]>> /\ UNCHANGED t
       \/ LET n__two == t IN n__two[2] /\ BagIn(1, b) /\ t' = <<0, FALSE>> /\ UNCHANGED queue
    /\ UNCHANGED <<m, b>>

look ==
    /\ (queue = <<>> \/ queue[Len(queue)] = 0) = TRUE
    /\ t' = <<1, TRUE>>
    /\ UNCHANGED <<queue, m, b>>

Next ==
    \/ \E x \in 0..1 : push(x)
    \/ drop
    \/ swap
    \/ look

Spec == Init /\ [][Next]_vars

\* A value outside its declared range is undefined in the spec.
TypeOK ==
    /\ Len(queue) <= 2 /\ (\A i \in DOMAIN queue : queue[i] \in 0..1)
    /\ \A x \in m : x \in [key: 0..1, value: 0..2]
    /\ BagCardinality(b) <= 2 /\ (\A x \in DOMAIN b : x \in 0..1)
    /\ t \in (0..1) \X BOOLEAN

y ==
    /\ SumOf([k \in {pair.key : pair \in m} |-> (CHOOSE pair \in m : pair.key = k).value]) <= 4
    /\ \A s \in SUBSET {pair.key : pair \in m} : Cardinality(s) <= 2
    /\ \A f \in MapsOf({pair.key : pair \in m}, {0, 1}) : Cardinality(f) = Cardinality(m)

z ==
    /\ SetMax(UNION {{k + v : v \in {v \in 0..2 : k <= v}} : k \in {0, 1}}) = 3
    /\ SumOfInts([each \in UNION {{<<k, v>> : v \in 0..2} : k \in {0, 1}} |-> each[1] - each[2]])
         < 0

x == [][BagCardinality(b) <= BagCardinality(b') + 1]_vars
====

SPECIFICATION Spec
INVARIANTS
    TypeOK
    y
    z
PROPERTIES
    x
CHECK_DEADLOCK TRUE
