"""What the machine allows: loopback sockets and memory, without any library."""
import os

from .processes import need_json
from .programs import chorus_binary
from .results import readable_size

BARE_RANKS = [2, 4]


def measure(programs, bin_directory, seconds, timeout):
    sockets = need_json([chorus_binary(bin_directory, "chorus-bench"), "--op", "all_reduce", "--ranks", 2, "--link",
                         "tcp", "--bytes", 4, "--ceiling", "--json"], timeout)[0]
    memory = need_json([programs.path("memory_bandwidth"), "--bytes", "131072,1048576,67108864", "--seconds", seconds,
                        "--threads", os.cpu_count()], timeout)
    pair = need_json([programs.path("bare_pair"), "--seconds", seconds], timeout)
    for ranks in BARE_RANKS:
        for processes in sorted({ranks, min(ranks, os.cpu_count())}):
            pair += need_json([programs.path("bare_all_reduce"), "--ranks", ranks, "--processes", processes, "--bytes",
                               "131072,1048576,8388608,67108864", "--seconds", seconds, "--bind", "auto"], timeout)
    return {"sockets": sockets, "memory": memory, "pair": pair}


def table(found):
    sockets = found["sockets"]
    rows = [["loopback TCP, round trip of a few bytes", f"{sockets['round_trip_us']:.1f}", "us"],
            ["loopback TCP, one way", f"{sockets['one_way_GBps']:.2f}", "GB/s"],
            ["loopback TCP, both ways at once, each", f"{sockets['both_ways_GBps']:.2f}", "GB/s"]]
    words = {"copy": "memory, copy a vector", "add": "memory, add two vectors into a third"}
    for line in found["memory"]:
        who = "one thread" if line["threads"] == 1 else f"{line['threads']} threads"
        rows.append([f"{words[line['what']]}, {readable_size(line['bytes'])}, {who}", f"{line['GBps']:.1f}", "GB/s"])
    for line in found["pair"]:
        if line["what"] == "exchange":
            what = f"bare exchange of {line['bytes']} bytes over loopback TCP, connections: {line['connections']}"
        else:
            how = {"line": "a cache line each way", "own": "all of it into its own output",
                   "none": "others' vectors read"}.get(line["stores"], f"{line['stores']} stores")
            processes = line.get("processes", line["ranks"])
            fewer = "" if processes == line["ranks"] else f"{line['ranks']} tensors by "
            what = f"bare all_reduce, {fewer}{processes} processes, {readable_size(line['bytes'])}, {how}"
        rows.append([what, f"{line['us']:.2f}", "us"])
    return ["what", "figure", "unit"], rows
