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


def had_full_speed(rows):
    """For each row whether all cores had the speed of the fastest one that was seen in any; without a speed: no."""
    fastest = max((row["fastest_core"] for row in rows if "fastest_core" in row), default=0)
    return [row.get("slowest_core", 0) >= AT_FULL_SPEED * fastest > 0 for row in rows]


def undisturbed(rows):
    """The rows of those rounds, for each link and number of ranks, in which everybody had full speed: a round in which
    only some had it would hold them against others that are not there."""
    def contest(row):
        return row["round"], row["link"], row["ranks"]
    disturbed = {contest(row) for row, full in zip(rows, had_full_speed(rows)) if not full}
    return [row for row in rows if contest(row) not in disturbed]


def remark(rows):
    """How many of the turns had all cores at full speed; one row each is enough of a turn."""
    def turns(some):
        return len({(row["ranks"], row["round"], row["system"], row["link"]) for row in some})
    alone = [row for row, full in zip(rows, had_full_speed(rows)) if full]
    return (f"all cores had their full speed before and after {turns(alone)} of {turns(rows)} turns, in the "
            f"others at least one had less than {AT_FULL_SPEED:.0%} of it")
