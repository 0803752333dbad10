"""ring_buffer.spec and ring.c, which is compiled for each run."""

from pathlib import Path

from specchk import At, BadFile, BadSpec
from specchk.conform.adapter import ProcessBinding, request


class RingBinding(ProcessBinding):
    """Items are observed in their order; where the first of them lies is not."""

    spec, model, folder = "ring_buffer.spec", "small", Path(__file__).parent
    build = ("cc", "-O1", "-Wall", "-Wextra", "-Werror", "-o", "{build}/ring", "ring.c")
    command, implementation = ("{build}/ring",), ("*.c",)
    gate = (At("small"), At("small", suite="walks"))
    controls = (
        BadSpec("more room", "larger"),
        BadFile("one item too many", "ring.c", "if (count == CAPACITY)", "if (count > CAPACITY)", "small"),
    )

    push, pop = request("push"), request("pop")
