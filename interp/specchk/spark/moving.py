"""Rows moved by Spark's shuffle to tasks that run at their homes.

PySpark's own `partitionBy` pickles rows and gathers up to a thousand of them, blocks of half a megabyte here,
before it hands one on.  `moved` does the same without: each row is bytes, after the number of its target.

Spark runs a task where its data are cached, or where an RDD prefers; a shuffle has no preference for an
executor.  The one public way to put rows and a preference together is a Cartesian product:

    rows          0    1    2    3            as they come from the shuffle
    homes         a    b                      `makeRDD` with locations, one element each
    product       0a 0b 1a 1b 2a 2b 3a 3b     prefers the locations of both
    pruned        0a       1b 2a       3b     each task at its home, and every row once
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark import RDD
from pyspark.serializers import NoOpSerializer


def moved(rows: RDD[bytes], places: Sequence[str]) -> RDD[bytes]:
    """The rows for each task, at its place; `rows` alternates targets and rows."""
    context: Any = rows.context
    raw: Any = rows
    raw._bypass_serializer = True  # as `partitionBy` has it: the items are bytes already
    gateway = context._jvm
    pairs = gateway.PairwiseRDD(raw._jrdd.rdd()).asJavaPairRDD()
    # The second number distinguishes functions; here the target is its own partition.
    shuffled = gateway.PythonRDD.valueOfPair(pairs.partitionBy(gateway.PythonPartitioner(len(places), 0)))
    return RDD(_placed(context, shuffled, places), context, NoOpSerializer())


def numbered(context: Any, places: Sequence[str]) -> RDD[int]:
    """One element for each task, at its place."""
    # A list: a range's elements are made by Python, in a worker of its own for each task.
    numbers: Any = context.parallelize([*range(len(places))], len(places))
    return RDD(_placed(context, numbers._jrdd, places), context, numbers._jrdd_deserializer)


def _placed(context: Any, rows: Any, places: Sequence[str]) -> Any:
    """The Java RDD with a place for each of its partitions; if one has none, Spark chooses for all."""
    homes = sorted(set(places))
    if "" in homes:
        return rows
    gateway = context._jvm
    seq = gateway.PythonUtils.toSeq
    elements = [gateway.scala.Tuple2(b"", seq([home])) for home in homes]
    tag = rows.classTag()
    located = context._jsc.sc().makeRDD(seq(elements), tag).toJavaRDD()
    # Row by row: product partition `task * len(homes) + home`.
    wanted = [task * len(homes) + homes.index(place) for task, place in enumerate(places)]
    product = rows.cartesian(located).keys()
    pruned = gateway.org.apache.spark.rdd.PartitionPruningRDD
    return pruned.create(product.rdd(), seq(wanted).toSet()).toJavaRDD()
