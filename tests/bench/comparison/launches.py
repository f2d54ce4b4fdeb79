"""How long `POST /v1/collectives?wait=30s` takes for four bytes on four workers, over one connection."""
import os
import struct
from dataclasses import dataclass, field

from . import cores
from .processes import Failure, need_json
from .results import median, percentile
from .service import Cluster, port_of, request

WORKERS = 4
BATCHES = 5


def put_values(cluster, values):
    for url, value in zip(cluster.workers, values):
        request("PUT", f"{url}/v1/tensors/x", struct.pack("<f", value),
                {"Content-Type": "application/octet-stream", "Tensor-Dtype": "f32", "Tensor-Shape": "1"})


def get_values(cluster):
    return [struct.unpack("<f", request("GET", f"{url}/v1/tensors/x"))[0] for url in cluster.workers]


@dataclass
class Launches:
    """All in microseconds; `busy_us` is one number per batch: what coordinator and workers had of processors for a call."""
    times_us: list = field(default_factory=list)
    bare_times_us: list = field(default_factory=list)
    busy_us: list = field(default_factory=list)
    looks: list = field(default_factory=list)  # at the cores, before, between and after the batches


def measure(workplace, programs, bin_directory, calls, timeout):
    """At least so many calls, and as many between bare processes, in turns. Each batch averages other values, and the
    average is checked: it stays the same in the calls that follow."""
    cluster = Cluster(workplace, bin_directory, WORKERS)
    cluster.make_group("launches")
    client = programs.path("http_client")
    found = Launches(looks=[cores.measure(programs, timeout)])
    for batch in range(BATCHES):
        values = [batch + worker for worker in (1, 2, 3, 6)]
        put_values(cluster, values)
        busy = cluster.busy_seconds()
        line = need_json([
            client, "--port", port_of(cluster.coordinator), "--method", "POST", "--path", "/v1/collectives?wait=30s",
            "--headers", "Content-Type: application/json", "--count", -(-calls // BATCHES), "--expect", "succeeded",
            "--body", '{"group":"launches","op":"all_reduce","tensor":"x","reduce":"avg"}'], timeout)[0]
        found.busy_us.append((cluster.busy_seconds() - busy) / len(line["times_us"]) * 1e6)
        if get_values(cluster) != [batch + 3.0] * WORKERS:
            raise Failure(f"wrong average: {get_values(cluster)}, not {batch + 3}")
        found.times_us += line["times_us"]
        bare = need_json([programs.path("bare_launch"), "--count", -(-calls // BATCHES)], timeout)[0]
        found.bare_times_us += bare["times_us"]
        found.looks.append(cores.measure(programs, timeout))
    return found


def table(found, number_of_cores=os.cpu_count()):
    header = ["what", "calls", "p50 us", "p99 us", "target", "reached"]
    middle, busy = median(found.times_us), median(found.busy_us)
    calls = str(len(found.times_us))
    return header, [["POST /v1/collectives?wait=30s, 4 B, 4 workers", calls, f"{middle:.0f}",
                     f"{percentile(found.times_us, 0.99):.0f}", "p50 < 1000 us", "yes" if middle < 1000 else "NO"],
                    ["processor time of coordinator and workers for it", calls, f"{busy:.0f}", "", "", ""],
                    [f"which is on {number_of_cores} cores at least", calls, f"{busy / number_of_cores:.0f}", "", "", ""],
                    ["the same messages between six bare processes", str(len(found.bare_times_us)),
                     f"{median(found.bare_times_us):.0f}", f"{percentile(found.bare_times_us, 0.99):.0f}", "", ""]]


def remark(found):
    """In which state the cores were."""
    speeds = [speed for look in found.looks for speed in look["turns_per_ns"]]
    lines = [look["line_ns"] for look in found.looks if look["line_ns"] is not None]
    apart = f"; a cache line took {min(lines)} to {max(lines)} ns from one core to the next and back" if lines else ""
    return f"The cores did {min(speeds):.2f} to {max(speeds):.2f} turns per ns meanwhile{apart}."
