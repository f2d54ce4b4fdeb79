"""Two racks that no label describes: real workers in network namespaces, with an uplink between the racks that is a
quarter as fast as a host's link. A group with `order: "measured"` finds the racks: the ring of its ranks crosses
between them twice, and an all_reduce around that ring is faster than around the ring by labels.
"""
import os
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "bench"))
from comparison.processes import Failure, Workplace  # noqa: E402
from comparison.racks import Cluster, Network  # noqa: E402
from comparison.service import request_json  # noqa: E402

RATE_MBIT = 200
BYTES = 4 << 20
SKIPPED = 77


UNSHARE = ("unshare", "--map-root-user", "--net", "--mount")


def own_network():
    """Restarts this program as root of a separate network and mount namespace. Raises Failure if that is impossible."""
    if os.environ.get("CHORUS_RACKS_NETWORK") != "own":
        for program in ("unshare", "ip", "tc"):
            if shutil.which(program) is None:
                raise Failure(f"{program} is missing")
        tried = subprocess.run([*UNSHARE, "true"], capture_output=True, text=True, check=False)
        if tried.returncode != 0:
            raise Failure(tried.stderr.strip())
        os.environ["CHORUS_RACKS_NETWORK"] = "own"
        os.execvp(UNSHARE[0], [*UNSHARE, sys.executable, *sys.argv])
    for command in ("mount -t tmpfs tmpfs /run", "ip link set lo up"):
        subprocess.run(command.split(), check=True)


def crossings(network, group):
    racks = [network.rack_of(int(member["worker"].removeprefix("w"))) for member in group["members"]]
    return sum(here != there for here, there in zip(racks, racks[1:] + racks[:1]))


def seconds_around_the_ring(cluster):
    return min(cluster.all_reduce(BYTES // 4, "ring")["seconds"] for _ in range(3))


def expect(holds, what):
    if not holds:
        raise Failure(what)


def story(cluster):
    network = cluster.network
    hosts = network.hosts
    cluster.put(BYTES // 4)
    by_labels = cluster.make_group()
    expect(crossings(network, by_labels) == hosts, "labels do not tell of racks, and workers came from both in turn")
    slow = seconds_around_the_ring(cluster)
    measured = cluster.make_group(order="measured")
    links = request_json("GET", f"{cluster.coordinator}/v1/links?group=g")["items"]
    fast = seconds_around_the_ring(cluster)
    print(f"all_reduce of {BYTES >> 20} MiB around the ring: {slow * 1e3:.0f} ms by labels, crossing "
          f"{crossings(network, by_labels)} times; {fast * 1e3:.0f} ms as measured, crossing {crossings(network, measured)} "
          f"times; stretch {measured['stretch']}")
    for link in links:
        print(f"  {link['from']} - {link['to']}: {link['latency_s'] * 1e6:.0f} us, {link['bytes_per_s'] * 8e-6:.0f} Mbit/s")
    expect(len(links) == hosts * (hosts - 1) // 2, f"{len(links)} pairs were measured")
    expect(crossings(network, measured) == 2, f"the ring crosses {crossings(network, measured)} times")
    expect(measured["stretch"]["assigned"] < measured["stretch"]["arrival_order"], "the stretch is no better")
    expect(fast < slow, "the measured ring is no faster")


def main(binaries):
    try:
        own_network()
        network = Network(RATE_MBIT).__enter__()
    except Failure as failure:
        print(f"skipped: no network of racks can be made here: {failure}")
        return SKIPPED
    try:
        with Workplace() as workplace:
            story(Cluster(network, workplace, Path(binaries), knows_racks=False))
    finally:
        network.__exit__()
    print("measured order: all passed")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(*sys.argv[1:]))
    except Failure as failure:
        sys.exit(f"measured order: {failure}")
