"""Two hosts with a slow, long way between them: network namespaces, and a device of each in the hand of a relay.

A shaper (tbf) holds each host to the rate. The relay, this program, takes every packet out of one host's device and puts
it into the other's after the delay: kernels without netem have nothing that delays. Needs root, ip and tc.
"""

from __future__ import annotations

import collections
import ctypes
import fcntl
import os
import pathlib
import select
import struct
import subprocess
import sys
import time

CLONE_NEWNET = 0x40000000
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
DEVICE, LARGEST_PACKET = "wan0", 65536
ADDRESSES = ["10.78.0.1", "10.78.0.2"]


class Network:
    """Two hosts, each a namespace with the device wan0. `rate_mbit` and `delay_s` are those of one direction."""

    def __init__(self, rate_mbit: float, delay_s: float) -> None:
        self.rate_mbit, self.delay_s = rate_mbit, delay_s
        self.hosts = [f"chorus-{os.getpid()}-{host}" for host in range(2)]
        self.relay: subprocess.Popen[str] | None = None

    def __enter__(self) -> Network:
        try:
            self._build()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self.relay is not None:
            self.relay.kill()
            self.relay.wait()
        for host in self.hosts:
            subprocess.run(["ip", "netns", "del", host], stderr=subprocess.DEVNULL, check=False)

    def on(self, host: int, *command: object) -> list[str]:
        """The command as it is run on a host."""
        return ["ip", "netns", "exec", self.hosts[host], *map(str, command)]

    def _build(self) -> None:
        for host in self.hosts:
            _run("ip", "netns", "add", host)
            _run("ip", "-n", host, "link", "set", "lo", "up")
            _run("ip", "-n", host, "tuntap", "add", "dev", DEVICE, "mode", "tun")
        command = [sys.executable, __file__, str(self.delay_s), *self.hosts]
        self.relay = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.relay.stdout is not None
        if self.relay.stdout.readline() != "relays\n":
            raise OSError("the relay did not start")
        for host, own, other in zip(self.hosts, ADDRESSES, reversed(ADDRESSES)):
            _run("ip", "-n", host, "addr", "add", own, "peer", other, "dev", DEVICE)
            _run("ip", "-n", host, "link", "set", DEVICE, "up")
            shape = ["root", "tbf", "rate", f"{self.rate_mbit}mbit", "burst", "64k", "latency", "1s"]
            _run("tc", "-n", host, "qdisc", "add", "dev", DEVICE, *shape)


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    if done.returncode != 0:
        raise OSError(f"{' '.join(command)}: {done.stderr.strip()}")


def open_device(host: str) -> int:
    """Takes a host's device. A device can be opened only in its own namespace."""
    with pathlib.Path("/run/netns", host).open() as namespace:
        if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"setns: {host}")
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH14x", DEVICE.encode(), IFF_TUN | IFF_NO_PI))
    return device


def relay(delay_s: float, hosts: list[str]) -> None:
    """Passes packets on, each after the delay, in their order."""
    devices = [open_device(host) for host in hosts]
    other = dict(zip(devices, reversed(devices)))
    under_way: collections.deque[tuple[float, int, bytes]] = collections.deque()
    poll = select.poll()
    for device in devices:
        poll.register(device, select.POLLIN)
    print("relays", flush=True)
    while True:
        wait_ms = max(0.0, under_way[0][0] - time.monotonic()) * 1000 if under_way else None
        for device, _ in poll.poll(wait_ms):
            try:
                packet = os.read(device, LARGEST_PACKET)
            except (BlockingIOError, OSError):
                continue  # the device is down
            under_way.append((time.monotonic() + delay_s, other[device], packet))
        while under_way and under_way[0][0] <= time.monotonic():
            _, device, packet = under_way.popleft()
            try:
                os.write(device, packet)
            except OSError:
                pass  # the device is down: a lost packet


if __name__ == "__main__":
    relay(float(sys.argv[1]), sys.argv[2:])
