"""The bank behind the protocol, run as a program: correct, or with the defect that its arguments name.

stubborn.py CAPABILITIES [MODE]      what `hello` lists, joined by commas; what goes wrong at the toss
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

LONG_S = 3600


def new() -> dict[str, Any]:
    return {"balance": {"a1": 2, "a2": 2}, "coin": "unseen", "days": 0, "nights": 0}


def say(number: Any, **members: Any) -> None:
    write(json.dumps({"id": number, **members}) + "\n")


def write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def stop() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def flood() -> None:
    """Write more than a pipe can hold, to both streams."""
    for number in range(5000):
        sys.stderr.write(f"warning {number} {'x' * 100}\n")
    sys.stderr.flush()


def hang() -> None:
    """Report in a file that it hangs, for the waiting test."""
    if mark := os.environ.get("STUBBORN_MARK"):
        Path(mark).touch()
    time.sleep(LONG_S)


def deaf() -> None:
    """Close the output, and keep running."""
    os.close(1)
    time.sleep(LONG_S)


def blind() -> None:
    """Close the input, then exit when something else happens: nothing."""
    os.close(0)
    time.sleep(LONG_S)


def exits() -> None:
    sys.stderr.write("cannot toss:\nno coin\n")
    sys.exit(3)


MODES: dict[str, Callable[[], None]] = {
    "exits": exits, "killed": stop, "hangs": hang, "deaf": deaf, "blind": blind,
    "garbage": lambda: write("tossing now\n"), "list": lambda: write("[1]\n"),
    "half": lambda: (write('{"id":'), sys.exit(0))[0], "other_id": lambda: say(12345, accepted=None),
    "no_id": lambda: write("{}\n"), "two_members": lambda: None, "floods": flood, "error": lambda: None,
    "long": lambda: write("x" * (1 << 25)),
    "not_utf8": lambda: (sys.stdout.buffer.write(b"\xff\xfe\n"), None)[1],
}  # fmt: skip


def step(bank: dict[str, Any], name: str, args: dict[str, Any]) -> str:
    """Take a step; return the reason of a refusal, empty if it was accepted."""
    match name:
        case "transfer":
            if bank["balance"][args["a"]] == 0:
                return "too poor"
            bank["balance"][args["a"]] -= 1
            bank["balance"][args["b"]] += 1
        case "toss":
            if bank["coin"] != "unseen":
                return "tossed already"
            bank["coin"] = args["way"]
        case "sleep":
            bank["days"] += 1
            bank["nights"] += 1
    return ""


def main(can: str, mode: str = "") -> None:
    bank = new()
    tossed = 0
    if mode == "no_start":
        sys.exit(7)
    for line in sys.stdin:
        request = json.loads(line)
        number = request["id"]
        if "hello" in request:
            version = 2 if mode == "version" else 1
            say(number, ready={"protocol": version, "can": [one for one in can.split(",") if one]})
        elif "do" in request:
            if request["do"] == "toss":
                tossed += 1
                if mode in MODES:
                    MODES[mode]()
                if mode == "two_members":
                    say(number, accepted=1, refused="both")
                    continue
                if mode == "error":
                    say(number, error="the coin is lost")
                    continue
                if mode == "fickle" and tossed % 2 == 0:
                    say(number, refused="not now")
                    continue
            refusal = step(bank, request["do"], request["args"])
            say(number, **({"refused": refusal} if refusal else {"accepted": None}))
        elif "observe" in request:
            say(number, state={name: bank[name] for name in ("balance", "coin", "days")})
        elif "snapshot" in request:
            say(number, snapshot=bank)
        elif "restore" in request or "reset" in request:
            unable = {"ok": False, "why": "the vault is open"}
            bank = request["restore"] if "restore" in request else new()
            say(number, **(unable if mode == "unable" else {"ok": True}))
        elif "ask" in request:
            say(number, answer=bank[request["ask"]])
        elif "quit" in request:
            say(number, ok=True)
            return


if __name__ == "__main__":
    main(*sys.argv[1:])
