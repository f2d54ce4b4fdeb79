"""all_reduce through the public C++ API beside the engine that does it: what whole workers with a coordinator add to a call."""
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor

from . import cores
from .processes import Failure, need_json
from .programs import chorus_binary
from .results import median, readable_size
from .rounds import rotated
from .service import Cluster, request_json
from .tables import ratio_text, time_text

RANKS, GROUP = 2, "api"
SIZES = [4, 1 << 10, 128 << 10, 1 << 20, 8 << 20]
REMARK = ("medians of the turns; ratio: median (least..largest) of the turns' own; both begin at the same kind of line, in "
          "memory of the arena; over tcp each has the algorithm that `auto` gives it")


def of_engine(bin_directory, link, seconds, timeout):
    return need_json([chorus_binary(bin_directory, "chorus-bench"), "--op", "all_reduce", "--ranks", RANKS, "--link", link,
                      "--bytes", ",".join(map(str, SIZES)), "--algorithm", "auto", "--dtype", "f32", "--seconds", seconds,
                      "--iterations", 10000, "--warmup", 5, "--json"], timeout)


def make_group(coordinator, program, timeout=20):
    """As soon as the program's workers have joined."""
    deadline = time.monotonic() + timeout
    while True:
        try:
            return request_json("PUT", f"{coordinator}/v1/groups/{GROUP}", {"workers": [f"api-{r}" for r in range(RANKS)]})
        except Failure:
            if program.done() or time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def of_api(workplace, bin_directory, link, seconds, timeout):
    """With a coordinator of its own, which is gone afterwards."""
    command = [chorus_binary(bin_directory, "api_all_reduce"), "--link", link, "--ranks", RANKS, "--bytes",
               ",".join(map(str, SIZES)), "--seconds", seconds]
    cluster = Cluster(workplace, bin_directory, 0)
    try:
        with ThreadPoolExecutor(1) as pool:
            program = pool.submit(need_json, [*command, "--coordinator", cluster.coordinator], timeout)
            try:
                make_group(cluster.coordinator, program)
            except Failure as failure:
                raise program.exception() or failure from failure
            return program.result()
    finally:
        workplace.stop_services()


def measure(workplace, bin_directory, links, rounds, seconds, look_at_cores, timeout, progress):
    """One row per link, size and round."""
    rows = []
    for number in range(rounds):
        for link in rotated(links, number):
            progress(f"round {number + 1} of {rounds}: the C++ API beside the engine over {link}")
            before = look_at_cores()
            turns = {"engine_us": lambda: of_engine(bin_directory, link, seconds, timeout),
                     "api_us": lambda: of_api(workplace, bin_directory, link, seconds, timeout)}
            found = {name: {line["bytes"]: line for line in turns[name]()} for name in rotated(list(turns), number)}
            state = cores.fields(before, look_at_cores())
            for size in SIZES:
                lines = {name: found[name][size] for name in turns}
                rows.append({"round": number, "system": "api", "link": link, "ranks": RANKS, "bytes": size,
                             "correct": all(line["correct"] for line in lines.values()),
                             **{name: line["p50_us"] for name, line in lines.items()}, **state})
    return rows


def table(rows):
    header = ["link", "size", "turns", "engine us", "C++ API us", "API/engine"]
    grouped = defaultdict(list)
    for row in rows:
        grouped[row["link"], row["bytes"]].append(row)
    lines = []
    for (link, size), found in sorted(grouped.items()):
        ratios = [row["api_us"] / row["engine_us"] for row in found]
        lines.append([link, readable_size(size), str(len(found)), *[time_text(median([row[name] for row in found]))
                                                                   for name in ("engine_us", "api_us")],
                      f"{ratio_text(median(ratios))} ({ratio_text(min(ratios))}..{ratio_text(max(ratios))})"])
    return header, lines
