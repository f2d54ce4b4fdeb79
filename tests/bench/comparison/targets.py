"""What Chorus sets out to reach, as ratios in one run. Pure."""
from collections import namedtuple

from .results import ratio

KIB, MIB = 1 << 10, 1 << 20

# `peer`: None stands for the best one.
Target = namedtuple("Target", "peer ratio")


def targets_of(link, ranks, size, cores):
    found = []
    if link == "shm" and ranks in (2, 4):
        if size >= MIB:
            found.append(Target(None, 5))
        elif size == 128 * KIB:
            found.append(Target(None, 3))
        elif size <= KIB:
            found.append(Target(None, 1))
    if link == "tcp" and ranks == 2:
        if size >= MIB:
            found.append(Target(None, 1.05))
        elif size < 4 * KIB:
            found += [Target("openmpi", 1), Target("gloo", 10)]
    if ranks > cores and not any(target.peer is None for target in found):
        found.append(Target(None, 1))
    return found


def reached(cell, target):
    """None where it cannot be said."""
    measured = ratio(cell, target.peer)
    return None if measured is None else measured >= target.ratio


def mark(cell, cores):
    """`yes`, `NO`, `?` where a figure is missing, `-` where nothing was set."""
    verdicts = [reached(cell, target) for target in targets_of(cell.link, cell.ranks, cell.bytes, cores)]
    if not verdicts:
        return "-"
    if False in verdicts:
        return "NO"
    return "?" if None in verdicts else "yes"


def describe(cell, cores):
    """`5` for the best peer, `10 gloo` for a certain one, `-` for none."""
    return ", ".join(f"{target.ratio:g}" + (f" {target.peer}" if target.peer else "")
                     for target in targets_of(cell.link, cell.ranks, cell.bytes, cores)) or "-"


def count(cells, cores):
    """Of the cells that have a target: how many reach it, how many miss it, how many lack a figure."""
    marks = [mark(cell, cores) for cell in cells]
    return marks.count("yes"), marks.count("NO"), marks.count("?")
