"""How fast the cores were while something was measured, and how far from each other.

A core of a virtual machine is a thread of a real one, whose other thread may be somebody else's: then it does about half
of what it does alone, for seconds or for hours. And two of them may be two threads of one core, two cores under one cache,
or under caches of their own, between which a line takes half or four times as long; the host moves them about. What is
measured then says as much about the host as about the program, and two programs may only be held against each other where
both had the same.
"""
from .processes import need_json

# Below this share of the fastest that the core was seen at, it had a neighbour.
AT_FULL_SPEED = 0.85
# Within so many times what a line mostly took between two cores, or that part of it, they stood where they mostly did.
ELSEWHERE = 2


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


def turn(row):
    """One row each is enough of a turn."""
    return row["ranks"], row["round"], row["system"], row["link"]


def had_full_speed(rows):
    """For each row whether all cores had the speed of the fastest one that was seen in any; without a speed: no."""
    fastest = max((row["fastest_core"] for row in rows if "fastest_core" in row), default=0)
    return [row.get("slowest_core", 0) >= AT_FULL_SPEED * fastest > 0 for row in rows]


def line_times(rows):
    """What a line took, before and after each turn, in order."""
    turns = {turn(row): (row["nearest_ns"], row["farthest_ns"]) for row in rows if "nearest_ns" in row}
    return sorted(time for looks in turns.values() for time in looks)


def places(rows):
    """For each row where the cores stood to each other, before and after it: as mostly, nearer, farther, or not at one
    place; None where nobody looked."""
    times = line_times(rows)
    usual = times[len(times) // 2] if times else 0
    def place(row):
        if "nearest_ns" not in row:
            return None
        nearest, farthest = row["nearest_ns"], row["farthest_ns"]
        if farthest * ELSEWHERE <= usual:
            return "nearer"
        if nearest >= usual * ELSEWHERE:
            return "farther"
        return "as mostly" if nearest * ELSEWHERE > usual and farthest < usual * ELSEWHERE else "moved"
    return [place(row) for row in rows]


def stood_as_mostly(rows):
    """For each row whether the cores were as far from each other as mostly, before and after; where nobody looked: no."""
    return [place == "as mostly" for place in places(rows)]


def of_rounds(rows, held):
    """The rows of those rounds, for each link and number of ranks, in which it held for everybody: a round in which it held
    for some would hold them against others that are not there."""
    def contest(row):
        return row["round"], row["link"], row["ranks"]
    others = {contest(row) for row, holds in zip(rows, held) if not holds}
    return [row for row in rows if contest(row) not in others]


def remarks(rows):
    """How many of the turns had all cores at full speed, and standing where they mostly did."""
    def turns(held):
        return len({turn(row) for row, holds in zip(rows, held) if holds})
    all_turns = turns([True] * len(rows))
    found = [f"all cores had their full speed before and after {turns(had_full_speed(rows))} of {all_turns} turns, in the "
             f"others at least one had less than {AT_FULL_SPEED:.0%} of it"]
    if times := line_times(rows):
        found.append(f"a cache line took {times[len(times) // 2]:.0f} ns from the first core to the second and back, mostly, and "
                     f"about that before and after {turns(stood_as_mostly(rows))} of {all_turns} turns; in the others "
                     f"{times[0]:.0f} to {times[-1]:.0f}: then the host has the cores elsewhere")
    return found
