"""How fast the cores were while something was measured, and how far from each other.

A core of a virtual machine is a thread of a real one, whose other thread may be somebody else's: then it does about half
of what it does alone, for seconds or for hours. And two of them may be two threads of one core, two cores under one cache,
or under caches of their own, between which a line takes four times as long. What is measured then says as much about the
host as about the program, and two programs may only be held against each other where both had the same.
"""
from .processes import need_json

# Below this share of the fastest that the core was seen at, it had a neighbour.
AT_FULL_SPEED = 0.85
# Above so many times the least that a line was seen to take between two cores, they were far apart.
FAR = 2.5


def measure(programs, timeout):
    """`turns_per_ns`: of a loop, of each core. `line_ns`: what a cache line takes from one core to another and back; None
    where there is only one."""
    return need_json([programs.path("core_speed")], timeout)[0]


def fields(before, after):
    """Of a row that was measured between two looks."""
    speeds = before["turns_per_ns"] + after["turns_per_ns"]
    found = {"slowest_core": min(speeds), "fastest_core": max(speeds)}
    lines = [look["line_ns"] for look in (before, after) if look["line_ns"] is not None]
    return {**found, "nearest_ns": min(lines), "farthest_ns": max(lines)} if lines else found


def had_full_speed(rows):
    """For each row whether all cores had the speed of the fastest one that was seen in any; without a speed: no."""
    fastest = max((row["fastest_core"] for row in rows if "fastest_core" in row), default=0)
    return [row.get("slowest_core", 0) >= AT_FULL_SPEED * fastest > 0 for row in rows]


def were_close(rows):
    """For each row whether the cores were close to each other before and after; where nobody looked: no."""
    nearest = min((row["nearest_ns"] for row in rows if "nearest_ns" in row), default=0)
    return ["farthest_ns" in row and row["farthest_ns"] <= FAR * nearest for row in rows]


def of_rounds(rows, held):
    """The rows of those rounds, for each link and number of ranks, in which it held for everybody: a round in which it held
    for some would hold them against others that are not there."""
    def contest(row):
        return row["round"], row["link"], row["ranks"]
    others = {contest(row) for row, holds in zip(rows, held) if not holds}
    return [row for row in rows if contest(row) not in others]


def remarks(rows):
    """How many of the turns had all cores at full speed, and how many close to each other."""
    def turns(some):  # one row each is enough of a turn
        return len({(row["ranks"], row["round"], row["system"], row["link"]) for row in some})
    alone = [row for row, full in zip(rows, had_full_speed(rows)) if full]
    close = [row for row, near in zip(rows, were_close(rows)) if near]
    found = [f"all cores had their full speed before and after {turns(alone)} of {turns(rows)} turns, in the "
             f"others at least one had less than {AT_FULL_SPEED:.0%} of it"]
    if any("nearest_ns" in row for row in rows):
        found.append(f"the first two cores were close to each other before and after {turns(close)} of {turns(rows)} turns, in "
                     f"the others a cache line took more than {FAR} times as long as in the best")
    return found
