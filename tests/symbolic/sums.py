"""Twelve specs outside difference logic, each with a change that breaks it."""

from __future__ import annotations

HEAD = "type Offset = nat upto {horizon}\n"
END = "deadlock ok\nmodel one:\n    expect holds\n"
SPECS = {
    "sum_below": ("""\
var a : Offset = 0
var b : Offset = 0
var c : Offset = 0
action grow(): c' = c + 1
action more_a():
    require a + b < c
    a' = a + 1
action more_b():
    require a + b < c
    b' = b + 1
invariant fits: a + b <= c
""", "require a + b < c\n    b'", "require a + b <= c\n    b'"),
    "twice": ("""\
var a : Offset = 0
var b : Offset = 0
action grow():
    b' = b + 2
    a' = a + 1
action drop():
    require a > 0
    a' = a - 1
invariant at_most_half: 2 * a <= b
""", "b' = b + 2", "b' = b + 1"),
    "parity": ("""\
var a : Offset = 0
action hop(): a' = a + 2
action back():
    require a > 3
    a' = a - 4
invariant even: a % 2 == 0
""", "a' = a - 4", "a' = a - 3"),
    "segment": ("""\
var start : Offset = 0
var end : Offset = 0
action append():
    any size in Offset:
        require size > 0 and end + size - start <= 1024
        end' = end + size
action roll(): start' = end
invariant fits: end - start <= 1024
""", "- start <= 1024\n        end'", "- start <= 1025\n        end'"),
    "bytes": ("""\
var records : Offset = 0
var bytes : Offset = 0
action append():
    records' = records + 1
    bytes' = bytes + 3
action drop():
    require records > 1
    records' = records - 1
    bytes' = bytes - 3
invariant counted: bytes == 3 * records
""", "bytes' = bytes - 3", "bytes' = bytes - 2"),
    "quotas": ("""\
sort Producer
var used : Producer -> Offset = { p: 0 for p in Producer }
var quota : Offset = 0
action grant(): quota' = quota + 1
action use(p: Producer):
    require sum(used[x] for x in Producer) < quota
    used'[p] = used[p] + 1
action release(p: Producer):
    require used[p] > 0
    used'[p] = used[p] - 1
invariant within: sum(used[x] for x in Producer) <= quota
""", "require sum(used[x] for x in Producer) < quota", "require used[p] < quota"),
    "batches": ("""\
var leo : Offset = 0
var hw : Offset = 0
action append():
    any n in 1..3:
        leo' = leo + n
action commit():
    any n in Offset:
        require n <= leo - hw
        hw' = hw + n
invariant below: hw <= leo
""", "require n <= leo - hw", "require n <= leo"),
    "stored_difference": ("""\
var leo : Offset = 0
var hw : Offset = 0
var lag : Offset = 0
action append():
    leo' = leo + 1
    lag' = leo + 1 - hw
action commit():
    require hw < leo
    hw' = hw + 1
    lag' = leo - hw - 1
invariant is_lag: lag == leo - hw
""", "lag' = leo - hw - 1", "lag' = leo - hw"),
    "difference_below": ("""\
var a : Offset = 0
var b : Offset = 0
var c : Offset = 0
action up_a():
    require a - b < c
    a' = a + 1
action up_b(): b' = b + 1
action up_c(): c' = c + 1
invariant near: a - b <= c
""", "require a - b < c", "require a - b < c + 1"),
    "majority": ("""\
var members : Offset = 0
var votes : Offset = 0
var done : bool = false
action join():
    require not done
    members' = members + 1
action vote():
    require votes < members
    votes' = votes + 1
action decide():
    require 2 * votes > members
    done' = true
invariant by_majority: done implies 2 * votes > members
""", "require 2 * votes > members", "require 2 * votes >= members"),
    "transfer": ("""\
var here : Offset = 0
var there : Offset = 0
var total : Offset = 0
action deposit():
    here' = here + 1
    total' = total + 1
action move():
    require here > 0
    here' = here - 1
    there' = there + 1
invariant kept: here + there == total
""", "here' = here - 1", "here' = 0"),
    "half": ("""\
var a : Offset = 0
var middle : Offset = 0
action grow():
    a' = a + 1
    middle' = (a + 1) // 2
invariant between: 2 * middle <= a and a <= 2 * middle + 1
""", "(a + 1) // 2", "a // 2 + 1"),
}  # fmt: skip

WINDOW = """\
var sent : Offset = 0
var acked : Offset = 0
action send():
    require sent - acked < {far}
    sent' = sent + 1
action acknowledge():
    require acked < sent
    acked' = acked + 1
invariant bounded: sent - acked <= {far}
"""
LEASE = """\
var now : Offset = 0
var granted : Offset = 0
var held : bool = false
var read_at : Offset = 0
action tick(): now' = now + 1
action grant():
    require not held
    granted' = now
    held' = true
action expire():
    require held and now > granted + {far}
    held' = false
action read():
    require held and now <= granted + {far}
    read_at' = now
invariant fresh: read_at <= granted + {far}
"""
SEGMENT = """\
var start : Offset = 0
var end : Offset = 0
action append():
    any size in Offset:
        require size > 0 and end + size - start <= {far}
        end' = end + size
action roll(): start' = end
invariant fits: end - start <= {far}
"""
CHAIN = """\
var a : Offset = 0
var b : Offset = 0
var c : Offset = 0
action up_a():
    require a - b < {far}
    a' = a + 1
action up_b():
    require b < a and b - c < {far}
    b' = b + 1
action up_c():
    require c < b
    c' = c + 1
invariant bounded: a - c <= {far} + {far}
"""
APART = """\
var a : Offset = {far} + {far}
var b : Offset = {far}
var c : Offset = 0
action up_a(): a' = a + 1
action up_b():
    require a - b > {far}
    b' = b + 1
action up_c():
    require b - c > {far}
    c' = c + 1
invariant apart: a - c >= {far} + {far}
"""
THRESHOLDS = {"window": WINDOW, "lease": LEASE, "segment": SEGMENT, "chain": CHAIN}

# Each with steps of any size, and one guard that allows one too many.
BROKEN_WINDOW = """\
var sent : Offset = 0
var acked : Offset = 0
action send():
    any n in Offset:
        require sent + n - acked <= {far} + 1
        sent' = sent + n
action acknowledge():
    any n in Offset:
        require acked + n <= sent
        acked' = acked + n
invariant bounded: sent - acked <= {far}
"""
BROKEN_LEASE = LEASE.replace(
    "tick(): now' = now + 1", "tick():\n    any n in Offset:\n        now' = now + n"
).replace("{far}\n    read_at'", "{far} + 1\n    read_at'")
BROKEN_CHAIN = """\
var a : Offset = 0
var b : Offset = 0
var c : Offset = 0
action up_a():
    any n in Offset:
        require a + n - b <= {far}
        a' = a + n
action up_b():
    any n in Offset:
        require b + n <= a and b + n - c <= {far} + 1
        b' = b + n
action up_c():
    any n in Offset:
        require c + n <= b
        c' = c + n
invariant bounded: a - c <= {far} + {far}
"""
BROKEN = {
    "window": BROKEN_WINDOW, "lease": BROKEN_LEASE, "chain": BROKEN_CHAIN,
    "segment": SEGMENT.replace("{far}\n        end'", "{far} + 1\n        end'"),
}  # fmt: skip


def spec(name: str, body: str, horizon: int) -> str:
    """The text of one of them."""
    end = END.replace("    expect", "    Producer = 2\n    expect") if "Producer" in body else END
    return f"spec {name}\n{HEAD.format(horizon=horizon)}{body}{end}"
