"""A coordinator with some workers, on ports that the system picks."""
import json
import pathlib
import time
import urllib.error
import urllib.request
from urllib.parse import urlsplit

from .processes import Failure
from .programs import chorus_binary


def request(method, url, body=None, headers=None, timeout=30):
    """The answer's body; Failure for anything but 2xx."""
    call = urllib.request.Request(url, data=body, headers=headers or {}, method=method)
    try:
        with urllib.request.urlopen(call, timeout=timeout) as answer:
            return answer.read()
    except urllib.error.HTTPError as error:
        raise Failure(f"{method} {url}: {error.code} {error.read().decode(errors='replace')[:200]}") from error
    except OSError as error:
        raise Failure(f"{method} {url}: {error}") from error


def request_json(method, url, body=None, timeout=30):
    encoded = None if body is None else json.dumps(body).encode()
    return json.loads(request(method, url, encoded, {"Content-Type": "application/json"}, timeout) or b"null")


def wait_until_ready(url, timeout=20):
    deadline = time.monotonic() + timeout
    while True:
        try:
            return request("GET", url + "/readyz", timeout=5)
        except Failure:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def port_of(url):
    return urlsplit(url).port


class Cluster:
    def __init__(self, workplace, bin_directory, workers):
        listening = "listening on "
        coordinator = workplace.start("coordinator", [chorus_binary(bin_directory, "chorus-coordinator"), "--port", 0,
                                                      "--log-level", "warn"])
        self.service_of_coordinator = coordinator
        self.coordinator = coordinator.wait_for_line(listening)
        self.services, self.workers = [], []
        for number in range(workers):
            service = workplace.start(f"worker-{number}", [
                chorus_binary(bin_directory, "chorus-worker"), "--port", 0, "--coordinator", self.coordinator,
                "--id", f"worker-{number}", "--log-level", "warn"])
            self.services.append(service)
            self.workers.append(service.wait_for_line(listening))
        for url in self.workers:
            wait_until_ready(url)

    def make_group(self, name):
        request_json("PUT", f"{self.coordinator}/v1/groups/{name}", {"size": len(self.workers)})

    def busy_seconds(self):
        """What all threads of its processes, as they are now, have had of processors."""
        pids = [service.pid for service in (self.service_of_coordinator, *self.services)]
        threads = [task for pid in pids for task in pathlib.Path(f"/proc/{pid}/task").iterdir()]
        return sum(int((task / "schedstat").read_text(encoding="ascii").split()[0]) for task in threads) * 1e-9

    def resident_bytes(self, worker):
        """The most that the process ever had in memory."""
        with open(f"/proc/{self.services[worker].pid}/status", encoding="ascii") as status:
            for line in status:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1024
        raise Failure("no VmHWM in /proc")
