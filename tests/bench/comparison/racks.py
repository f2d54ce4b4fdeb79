"""Hosts in one or two racks on one machine: network namespaces, veth pairs, and links shaped with tbf, the racks' uplinks a
quarter as fast as a host's; and a coordinator with a worker on every host. Needs root, of a user namespace at least.
"""
import contextlib
import json
import os
import struct
import subprocess
import time

from .processes import Failure
from .programs import chorus_binary
from .service import request, request_json, wait_until_ready

MEASURING_SECONDS = 60
SUBNET = "10.77.0"
OBSERVER = f"{SUBNET}.254"


def run(*words):
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=30, check=False)
    if done.returncode != 0:
        raise Failure(f"{' '.join(map(str, words))}: {done.stderr.strip()}")


def usual_congestion_control():
    """cubic, which most hosts have; or reno, where the system lets namespaces have no cubic."""
    with open("/proc/sys/net/ipv4/tcp_allowed_congestion_control", encoding="ascii") as file:
        return "cubic" if "cubic" in file.read().split() else "reno"


def address_of(host):
    return f"{SUBNET}.{host + 1}"


class Network:
    """A namespace per host and per rack; in the rack's a bridge. The coordinator stands outside, on the first rack's bridge."""

    def __init__(self, rate_mbit, congestion_control=None, hosts=8, racks=2):
        self.rate_mbit = rate_mbit
        self.hosts, self.racks = hosts, racks
        self.congestion_control = congestion_control or usual_congestion_control()
        self.prefix = f"chorus-{os.getpid()}"
        self.outside = f"ch{os.getpid()}"[:15]
        self.made = []

    def __enter__(self):
        try:
            self.build()
        except Failure:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        with contextlib.suppress(Failure):
            run("ip", "link", "del", self.outside)
        for name in self.made:
            with contextlib.suppress(Failure):
                run("ip", "netns", "del", name)

    def rack_of(self, host):
        return host % self.racks

    def host(self, number):
        return f"{self.prefix}-h{number}"

    def rack(self, number):
        return f"{self.prefix}-r{number}"

    def add(self, name):
        run("ip", "netns", "add", name)
        self.made.append(name)
        run("ip", "-n", name, "link", "set", "lo", "up")

    def shape(self, namespace, device, mbit):
        run("tc", "-n", namespace, "qdisc", "add", "dev", device, "root", "tbf", "rate", f"{mbit}mbit", "burst", "128k",
            "latency", "1s")

    def plug(self, rack, device):
        run("ip", "-n", self.rack(rack), "link", "set", device, "master", "bridge", "up")

    def build(self):
        addresses = subprocess.run(["ip", "-o", "addr"], capture_output=True, text=True, timeout=30, check=False).stdout
        if f" {OBSERVER}/" in addresses:
            raise Failure(f"{OBSERVER} is in use, as after a run that was killed: ip -o addr, ip link del, ip netns del")
        for rack in range(self.racks):
            self.add(self.rack(rack))
            run("ip", "-n", self.rack(rack), "link", "add", "bridge", "type", "bridge")
            run("ip", "-n", self.rack(rack), "link", "set", "bridge", "up")
        for host in range(self.hosts):
            rack = self.rack(self.rack_of(host))
            self.add(self.host(host))
            run("ip", "-n", self.host(host), "link", "add", "eth0", "type", "veth", "peer", "name", f"host{host}",
                "netns", rack)
            run("ip", "-n", self.host(host), "addr", "add", f"{address_of(host)}/24", "dev", "eth0")
            run("ip", "-n", self.host(host), "link", "set", "eth0", "up")
            run("ip", "netns", "exec", self.host(host), "sysctl", "-qw",
                f"net.ipv4.tcp_congestion_control={self.congestion_control}")
            self.plug(self.rack_of(host), f"host{host}")
            self.shape(self.host(host), "eth0", self.rate_mbit)
            self.shape(rack, f"host{host}", self.rate_mbit)
        if self.racks == 2:
            run("ip", "-n", self.rack(0), "link", "add", "uplink", "type", "veth", "peer", "name", "uplink",
                "netns", self.rack(1))
            for rack in range(self.racks):
                self.plug(rack, "uplink")
                self.shape(self.rack(rack), "uplink", self.rate_mbit / 4)
        run("ip", "link", "add", self.outside, "type", "veth", "peer", "name", "outside", "netns", self.rack(0))
        self.plug(0, "outside")
        run("ip", "addr", "add", f"{OBSERVER}/24", "dev", self.outside)
        run("ip", "link", "set", self.outside, "up")


class Cluster:
    """Workers w0, w1 and so on, racks in turn. `constants`: a file of what the network costs, if the coordinator is to know."""

    def __init__(self, network, workplace, bin_directory, knows_racks, constants=None):
        self.network = network
        self.knows_racks = knows_racks
        known = ["--constants", constants] if constants else []
        coordinator = workplace.start("coordinator", [
            chorus_binary(bin_directory, "chorus-coordinator"), "--host", OBSERVER, "--port", 0, "--log-level", "warn",
            "--insecure-no-auth", *known])
        self.coordinator = coordinator.wait_for_line("listening on ")
        self.workers = []
        for host in range(network.hosts):
            place = f"rack=r{network.rack_of(host)},host=h{host}" if knows_racks else f"host=h{host}"
            worker = workplace.start(f"worker-{host}", [
                "ip", "netns", "exec", network.host(host), chorus_binary(bin_directory, "chorus-worker"), "--host",
                address_of(host), "--port", 7071, "--coordinator", self.coordinator, "--id", f"w{host}", "--locality", place,
                "--shm", "off", "--log-level", "warn", "--insecure-no-auth"])
            url = worker.wait_for_line("listening on ")
            wait_until_ready(url)
            self.workers.append(url)

    def levels_beyond(self, host):
        """On how many levels it has somebody who was there before it: to one of each it measures the way when it joins."""
        rack_of = self.network.rack_of
        return len({self.knows_racks and rack_of(host) == rack_of(other) for other in range(host)})

    def wait_until_measured(self):
        """Until every worker that joined has measured what it does then: no run is disturbed by that, nor disturbs it."""
        expected = sum(self.levels_beyond(host) for host in range(self.network.hosts))
        deadline = time.monotonic() + MEASURING_SECONDS
        while len(request_json("GET", f"{self.coordinator}/v1/links")["items"]) < expected:
            if time.monotonic() > deadline:
                raise Failure(f"fewer than {expected} links were measured in {MEASURING_SECONDS} s")
            time.sleep(0.1)

    def make_group(self, **wishes):
        """The group as the coordinator shows it."""
        return request_json("PUT", f"{self.coordinator}/v1/groups/g", {"size": self.network.hosts, **wishes}, timeout=90)

    def put(self, elements):
        for number, url in enumerate(self.workers):
            request("PUT", f"{url}/v1/tensors/x", struct.pack("<f", number + 1) * elements,
                    {"Tensor-Dtype": "f32", "Tensor-Shape": str(elements), "Content-Type": "application/octet-stream"}, 120)

    def collective(self, op, output, patience=30, **wishes):
        """The record of one over the tensor x, which the workers have; it is asked for as many seconds."""
        record = request_json("POST", f"{self.coordinator}/v1/collectives?wait=2m", {
            "group": "g", "op": op, "tensor": "x", "output": output, "timeout_ms": 110000, **wishes}, timeout=patience)
        if record["state"] != "succeeded":
            raise Failure(f"{op}: {json.dumps(record.get('error'))}")
        return record

    def all_reduce(self, elements, algorithm, compression=None):
        """The record. Every element is the same number, also after compression, which may be off by a rounding."""
        wish = {"compression": compression} if compression else {}
        record = self.collective("all_reduce", "sum", algorithm=algorithm, **wish)
        expected = self.network.hosts * (self.network.hosts + 1) / 2
        result = request("GET", f"{self.workers[-1]}/v1/tensors/sum", timeout=120)
        error = abs(struct.unpack("<f", result[:4])[0] - expected)
        if error > (1e-6 * expected if compression else 0) or result != result[:4] * elements:
            raise Failure("a wrong sum")
        return record
