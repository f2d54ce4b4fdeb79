"""Messages to and fro between two programs on the public C++ API, beside MPI_Send and MPI_Recv."""
from collections import defaultdict

from . import cores
from .processes import need_json
from .programs import chorus_binary
from .results import median, readable_size
from .rounds import rotated
from .service import Cluster
from .systems import MPICH_TRANSPORTS, OPENMPI_TRANSPORTS
from .tables import ratio_text, time_text

SIZES = [4, 1 << 10, 64 << 10, 1 << 20, 64 << 20]
OPENMPI_ENVIRONMENT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
REMARK = ("half a round trip: medians of the turns; each end stays on a core of its own; ratio: Open MPI's time over "
          "Chorus's, median (least..largest) of the turns' own")


def flags(seconds):
    return ["--bytes", ",".join(map(str, SIZES)), "--seconds", seconds]


def of_chorus(workplace, bin_directory, link, seconds, timeout):
    cluster = Cluster(workplace, bin_directory, 0)
    try:
        return need_json([chorus_binary(bin_directory, "api_ping_pong"), "--coordinator", cluster.coordinator, "--link",
                          link, *flags(seconds)], timeout)
    finally:
        workplace.stop_services()


def of_openmpi(workplace, programs, link, seconds, timeout):
    return need_json(["mpirun.openmpi", "--oversubscribe", "--bind-to", "none", "-np", 2, "--mca", "pml", "ob1",
                      *OPENMPI_TRANSPORTS[link], "--mca", "btl_vader_backing_directory", workplace.directory,
                      programs.path("openmpi_ping_pong"), *flags(seconds)], timeout,
                     {**OPENMPI_ENVIRONMENT, "TMPDIR": str(workplace.directory)})


def of_mpich(programs, link, seconds, timeout):
    return need_json(["mpirun.mpich", "-np", 2, *MPICH_TRANSPORTS[link], programs.path("mpich_ping_pong"),
                      *flags(seconds)], timeout)


def measure(workplace, programs, bin_directory, links, peers, rounds, seconds, look_at_cores, timeout, progress):
    """One row per link, size and round."""
    rows = []
    for number in range(rounds):
        for link in rotated(links, number):
            progress(f"round {number + 1} of {rounds}: messages over {link}")
            turns = {"chorus": lambda: of_chorus(workplace, bin_directory, link, seconds, timeout),
                     "openmpi": lambda: of_openmpi(workplace, programs, link, seconds, timeout),
                     "mpich": lambda: of_mpich(programs, link, seconds, timeout)}
            taking_part = [name for name in turns if name == "chorus" or name in peers]
            before = look_at_cores()
            found = {name: {line["bytes"]: line for line in turns[name]()} for name in rotated(taking_part, number)}
            state = cores.fields(before, look_at_cores())
            for size in SIZES:
                lines = {name: found[name][size] for name in taking_part}
                rows.append({"round": number, "system": "messages", "link": link, "ranks": 2, "bytes": size,
                             "correct": all(line["correct"] for line in lines.values()),
                             **{f"{name}_us": line["p50_us"] for name, line in lines.items()}, **state})
    return rows


def table(rows):
    systems = [name for name in ("chorus", "openmpi", "mpich") if f"{name}_us" in rows[0]]
    header = ["link", "size", "turns", *[f"{name} us" for name in systems], "openmpi/chorus"]
    grouped = defaultdict(list)
    for row in rows:
        grouped[row["link"], row["bytes"]].append(row)
    lines = []
    for (link, size), found in sorted(grouped.items()):
        ratios = [row["openmpi_us"] / row["chorus_us"] for row in found if "openmpi_us" in row]
        ratio = f"{ratio_text(median(ratios))} ({ratio_text(min(ratios))}..{ratio_text(max(ratios))})" if ratios else ""
        lines.append([link, readable_size(size), str(len(found)),
                      *[time_text(median([row[f"{name}_us"] for row in found])) for name in systems], ratio])
    return header, lines
