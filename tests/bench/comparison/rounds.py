"""The all_reduce contest: everybody in turn, several times, so that what disturbs the machine disturbs all of them."""
import os

from . import cores
from .processes import Failure, run_for_json
from .results import readable_size

# What a rank holds at most: two inputs, what is expected of each, the result, and the library's own.
VECTORS_PER_RANK = 7


def affordable(ranks, sizes, available_bytes):
    """Sizes that fit into memory, and those that do not."""
    fitting = [size for size in sizes if ranks * size * VECTORS_PER_RANK < available_bytes]
    return fitting, [size for size in sizes if size not in fitting]


def memory_available_bytes():
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")


def rotated(values, by):
    by %= max(len(values), 1)
    return values[by:] + values[:by]


def row_of(contender, number, ranks, size, **figures):
    return {"round": number, "system": contender.name, "link": contender.link, "also": contender.also, "ranks": ranks,
            "bytes": size, **figures}


def measure(contender, number, ranks, sizes, pace, timeout):
    """One row per size."""
    fitting, too_large = affordable(ranks, sizes, memory_available_bytes())
    rows = [row_of(contender, number, ranks, size, missing=f"{readable_size(size)} needs more memory than there is")
            for size in too_large]
    if not fitting:
        return rows
    try:
        found, problem = run_for_json(contender.command(pace, ranks, fitting), timeout, contender.environment)
    except Failure as failure:
        found, problem = [], str(failure)
    by_size = {figures["bytes"]: figures for figures in found}
    for size in fitting:
        if size in by_size:
            kept = ("p50_us", "p99_us", "iterations", "correct", "algorithm")
            rows.append(row_of(contender, number, ranks, size,
                               **{key: by_size[size][key] for key in kept if key in by_size[size]}))
        else:
            rows.append(row_of(contender, number, ranks, size, missing=problem or "no figure was printed"))
    return rows


def contest(contenders, rounds, all_ranks, sizes, pace, timeout, look_at_cores, progress):
    """Yields rows, with what look_at_cores() gave before and after. Who could not be measured at all is not asked again."""
    for ranks in all_ranks:
        hopeless = {}
        for number in range(rounds):
            for contender in rotated(contenders, number):
                key = (contender.name, contender.link)
                if key in hopeless:
                    yield from (row_of(contender, number, ranks, size, missing=hopeless[key]) for size in sizes)
                    continue
                progress(f"p = {ranks}, round {number + 1} of {rounds}: {contender.name} over {contender.link}")
                before = look_at_cores()
                rows = measure(contender, number, ranks, sizes, pace, timeout)
                found = cores.fields(before, look_at_cores())
                for row in rows:
                    row.update(found)
                if all("missing" in row for row in rows):
                    hopeless[key] = rows[-1]["missing"]
                yield from rows
