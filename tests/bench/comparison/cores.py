"""How fast the cores were while something was measured.

A core of a virtual machine is a thread of a real one, whose other thread may be somebody else's: then it does about half
of what it does alone, for seconds or for hours. What is measured then says as much about the neighbour as about the
program, and two programs may only be held against each other where both had the same.
"""
from .processes import need_json

# Below this share of the fastest that the core was seen at, it had a neighbour.
AT_FULL_SPEED = 0.85


def measure(programs, timeout):
    """Of each core, turns of a loop per ns."""
    return need_json([programs.path("core_speed")], timeout)[0]["turns_per_ns"]


def undisturbed(rows):
    """The rows measured while every core had the speed of the fastest one that was seen in all rows; rows without a
    speed are left out."""
    fastest = max((row["fastest_core"] for row in rows if "fastest_core" in row), default=0)
    return [row for row in rows if row.get("slowest_core", 0) >= AT_FULL_SPEED * fastest > 0]


def remark(rows):
    """How many of the turns had all cores at full speed; one row each is enough of a turn."""
    def turns(some):
        return len({(row["ranks"], row["round"], row["system"], row["link"]) for row in some})
    return (f"all cores had their full speed before and after {turns(undisturbed(rows))} of {turns(rows)} turns, in the "
            f"others at least one had less than {AT_FULL_SPEED:.0%} of it")
