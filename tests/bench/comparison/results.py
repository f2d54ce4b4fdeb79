"""What was measured, as rows, and what follows from it. Pure.

A row is a dictionary: round, system, link, ranks, bytes, and either p50_us, p99_us, iterations, correct, or
missing: why there is no figure.
"""
import math
import re
from collections import namedtuple

# One line of the table. `times` maps a system to its median over the rounds in microseconds; `missing` maps a system to
# the reason why it has none.
Cell = namedtuple("Cell", "link ranks bytes times missing rounds")

OWN = "chorus"


def median(values):
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def percentile(values, fraction):
    """Nearest rank."""
    ordered = sorted(values)
    return ordered[max(math.ceil(fraction * len(ordered)), 1) - 1]


def parse_size(text):
    """4, 1K, 64M: powers of 1024."""
    match = re.fullmatch(r"(\d+)([KMG]?)", text)
    if not match:
        raise ValueError(f"not a size: {text}")
    return int(match[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[match[2]]


def readable_size(size):
    for shift, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if size >= 1 << shift and size % (1 << shift) == 0:
            return f"{size >> shift} {unit}"
    return f"{size} B"


def system_of(row):
    """Variants of one system, like its algorithms, count as one."""
    return row["system"].split("/")[0]


def usable(row):
    return "missing" not in row and row["correct"]


def complaint(rows):
    """Why none of the rows can be used."""
    return next((row["missing"] for row in rows if "missing" in row), "wrong results")


def best_variant_us(rows):
    """The median over the rounds of the variant that is fastest; None where none has a right result in each round."""
    variants = {}
    for row in rows:
        variants.setdefault(row["system"], []).append(row)
    medians = [median([row["p50_us"] for row in of_variant]) for of_variant in variants.values()
               if all(usable(row) for row in of_variant)]
    return min(medians, default=None)


def cells(rows, links):
    """One cell for every link, number of ranks and size, in this order. A row may stand in several links' cells: what
    Gloo does over tcp is also what it has to offer on one host (`also`: further links)."""
    grouped = {}
    for row in rows:
        for link in {row["link"], *row.get("also", [])} & set(links):
            grouped.setdefault((link, row["ranks"], row["bytes"]), {}).setdefault(system_of(row), []).append(row)
    found = []
    for link, ranks, size in sorted(grouped, key=lambda key: (links.index(key[0]), key[1:])):
        systems = grouped[link, ranks, size]
        times, missing, rounds = {}, {}, {}
        for system, of_system in systems.items():
            time = best_variant_us(of_system)
            if time is None:
                missing[system] = complaint(of_system)
                continue
            times[system] = time
            rounds[system] = best_of_rounds(of_system)
        found.append(Cell(link, ranks, size, times, missing, rounds))
    return found


def best_of_rounds(rows):
    """In each round, the time of the fastest variant."""
    by_round = {}
    for row in rows:
        if usable(row):
            by_round.setdefault(row["round"], []).append(row["p50_us"])
    return {number: min(times) for number, times in by_round.items()}


def peers_of(cell):
    return {system: time for system, time in cell.times.items() if system != OWN}


def best_peer(cell):
    """Name of the fastest peer; None without one."""
    return min(peers_of(cell), key=cell.times.get, default=None)


def ratio(cell, peer=None):
    """How many times as long as Chorus a peer takes, the best one unless it is named; None where one is missing."""
    peer = peer or best_peer(cell)
    if OWN not in cell.times or peer not in cell.times:
        return None
    return cell.times[peer] / cell.times[OWN]


def ratio_range(cell):
    """The least and the largest ratio to the best peer that a single round gave; None where there is no ratio."""
    if ratio(cell) is None:
        return None
    ours = cell.rounds[OWN]
    theirs = [of_rounds for system, of_rounds in cell.rounds.items() if system != OWN]
    ratios = [min(of_rounds[number] for of_rounds in theirs if number in of_rounds) / ours[number]
              for number in ours if any(number in of_rounds for of_rounds in theirs)]
    return (min(ratios), max(ratios)) if ratios else None
