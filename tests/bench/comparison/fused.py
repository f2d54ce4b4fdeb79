"""A hundred tensors of 4 KiB, two ranks: one call for each beside one call for all of them; and what bare sockets make of
the same bytes meanwhile."""
from collections import defaultdict

from . import cores
from .processes import need_json
from .programs import chorus_binary
from .results import median
from .rounds import rotated
from .tables import ratio_text, time_text

TENSORS, RANKS = 100, 2
TARGET = 5
REMARK = ("medians of the turns; ratio: median (least..largest) of the turns' own; bare: two processes that do nothing else, "
          "over one or two sockets, the faster way")


def of_chorus(bin_directory, link, seconds, timeout):
    line = need_json([chorus_binary(bin_directory, "chorus-bench"), "--fused", TENSORS, "--ranks", RANKS, "--link", link,
                      "--bytes", "4K", "--seconds", seconds, "--json"], timeout)[0]
    return {"correct": line["correct"], "each_us": line["separate_p50_us"], "all_us": line["fused_p50_us"]}


def of_bare_sockets(programs, seconds, timeout):
    """All at once in the way that was fastest."""
    lines = need_json([programs.path("bare_fused"), "--seconds", seconds], timeout)
    times = defaultdict(list)
    for line in lines:
        times[line["how"]].append(line["us"])
    return {"bare_each_us": min(times["one by one"]), "bare_all_us": min(times["all at once"])}


def measure(programs, bin_directory, links, rounds, seconds, timeout, progress):
    """One row per link and round; bare sockets beside tcp."""
    rows = []
    for number in range(rounds):
        for link in rotated(links, number):
            progress(f"round {number + 1} of {rounds}: {TENSORS} tensors over {link}")
            before = cores.measure(programs, timeout)
            turns = [lambda: of_chorus(bin_directory, link, seconds, timeout)]
            if link == "tcp":
                turns.append(lambda: of_bare_sockets(programs, seconds, timeout))
            row = {"round": number, "system": "fused", "ranks": RANKS, "link": link}
            for turn in rotated(turns, number):
                row.update(turn())
            rows.append({**row, **cores.fields(before, cores.measure(programs, timeout))})
    return rows


def columns(rows, each, all_of_them):
    if each not in rows[0]:
        return ["-", "-", "-"]
    ratios = [row[each] / row[all_of_them] for row in rows]
    return [time_text(median([row[each] for row in rows])), time_text(median([row[all_of_them] for row in rows])),
            f"{ratio_text(median(ratios))} ({ratio_text(min(ratios))}..{ratio_text(max(ratios))})"]


def spread(rows):
    """What a cache line took from one core to the other and back."""
    times = cores.line_times(rows)
    return f"{times[0]:.0f}..{times[-1]:.0f}" if times else "-"


def table(rows):
    """By where the host had the cores meanwhile; ratios are medians of the turns' own."""
    header = ["link", "cores", "a line, ns", "turns", "each us", "all us", "ratio", "bare: each us", "all us", "ratio", "target",
              "reached"]
    grouped = defaultdict(list)
    for row, place in zip(rows, cores.places(rows)):
        grouped[row["link"], place].append(row)
    lines = []
    for (link, place), found in sorted(grouped.items(), key=lambda item: (item[0][0], -len(item[1]))):
        reached = median([row["each_us"] / row["all_us"] for row in found]) >= TARGET
        lines.append([link, place or "-", spread(found), str(len(found)), *columns(found, "each_us", "all_us"),
                      *columns(found, "bare_each_us", "bare_all_us"), str(TARGET), "yes" if reached else "NO"])
    return header, lines
