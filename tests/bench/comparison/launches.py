"""How long `POST /v1/collectives?wait=30s` takes for four bytes on four workers, over one connection."""
import struct

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


def measure(workplace, programs, bin_directory, calls, timeout):
    """Times of at least so many calls, in microseconds, and of as many between bare processes, in turns. Each batch
    averages other values, and the average is checked: it stays the same in the calls that follow."""
    cluster = Cluster(workplace, bin_directory, WORKERS)
    cluster.make_group("launches")
    client = programs.path("http_client")
    times, bare = [], []
    for batch in range(BATCHES):
        values = [batch + worker for worker in (1, 2, 3, 6)]
        put_values(cluster, values)
        line = need_json([
            client, "--port", port_of(cluster.coordinator), "--method", "POST", "--path", "/v1/collectives?wait=30s",
            "--headers", "Content-Type: application/json", "--count", -(-calls // BATCHES), "--expect", "succeeded",
            "--body", '{"group":"launches","op":"all_reduce","tensor":"x","reduce":"avg"}'], timeout)[0]
        if get_values(cluster) != [batch + 3.0] * WORKERS:
            raise Failure(f"wrong average: {get_values(cluster)}, not {batch + 3}")
        times += line["times_us"]
        bare += need_json([programs.path("bare_launch"), "--count", -(-calls // BATCHES)], timeout)[0]["times_us"]
    return times, bare


def table(times, bare):
    header = ["what", "calls", "p50 us", "p99 us", "target", "reached"]
    middle = median(times)
    return header, [["POST /v1/collectives?wait=30s, 4 B, 4 workers", str(len(times)), f"{middle:.0f}",
                     f"{percentile(times, 0.99):.0f}", "p50 < 1000 us", "yes" if middle < 1000 else "NO"],
                    ["the same messages between six bare processes", str(len(bare)), f"{median(bare):.0f}",
                     f"{percentile(bare, 0.99):.0f}", "", ""]]
