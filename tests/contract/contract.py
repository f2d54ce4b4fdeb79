#!/usr/bin/env python3
"""Every operation of docs/openapi.json, asked of real services until it has given every status that the document says it
may: header fields, media type and body of each answer have to be as the document says. Fails where an answer is not in the
document, and where a status of the document was never answered.

    tests/contract/contract.py BINARIES FAILING_ALLOCATION_LIBRARY [docs/openapi.json]
"""

import collections
import os
import pathlib
import subprocess
import sys

from coordinator_answers import coordinator, draining, with_guest
from document import Document
from everywhere import ELSEWHERE, everywhere
from parameter_answers import checkpoints, of_several_shards, parameter_data, shards, without_directories
from services import Fleet
from worker_answers import calls, client_memory, probes, runs, tensors

ROOT = pathlib.Path(__file__).resolve().parents[2]


# What no request brings about in the time of a test, and why it is in the document all the same.
ON_A_GPU = "memory on a GPU: test_worker_gpu asks, on doubles"
NOT_ASKED = {
    **{("worker", "put_v1_shm_cuda_name", status): ON_A_GPU for status in (200, 201, 409)},
    **{("worker", "delete_v1_shm_cuda_name", status): ON_A_GPU for status in (204, 409)},
    ("worker", "get_v1_shm_cuda_name", 200): ON_A_GPU,
    ("coordinator", "get_v1_events", 410): "the last 10000 events are kept; events_test.cpp asks where they are fewer",
    ("worker", "put_v1_parameters_name_shards_shard", 504): "a log that cannot be begun for ten minutes: a disk that hangs",
    ("worker", "post_v1_parameters_name_shards_shard_log", 504): "a backup that applies one push for ten seconds",
    **{("worker", operation, 504): "a disk that answers each call and takes ten minutes for all of them"
       for operation in ("get_v1_checkpoints_name", "post_v1_checkpoints_name_numbers", "post_v1_checkpoints_name_commit",
                         "delete_v1_checkpoints_name_files_number")},
    ("worker", "post_v1_checkpoints_name_files", 504): "an owner that applies one push for a minute",
    ("worker", "post_v1_checkpoints_name_commit", 404): "a file that vanished between its writing and the commit",
    ("worker", "post_v1_checkpoints_name_holds", 504): "an owner that applies one push for as long",
    ("worker", "post_v1_checkpoints_name_images", 504): "an owner that does not come to the place where it is held",
}


class Contract:
    def __init__(self, document):
        self.document = document
        self.answered = collections.Counter()  # by (service, operation, status)
        self.wrong = []
        self.asked = 0

    def ask(self, service, method, path, body=None, headers=None, expect=None, stream_bytes=None):
        answer = service.ask(method, path, body, headers, stream_bytes)
        return self.judge(service, method, path, answer, expect)

    def say(self, service, method, path, header, expect=None):
        return self.judge(service, method, path, service.say(header), expect)

    def judge(self, service, method, path, answer, expect=None):
        self.asked += 1
        said = f"{service.kind}: {method} {path} -> {answer.status} {answer.body[:300]!r}"
        try:
            self.answered[self.document.check(service.kind, method, path, answer)] += 1
        except Exception as error:  # every kind of disagreement is reported, and the next request is asked
            self.wrong.append(f"{said}\n    {str(error)[:600]}")
        if expect is not None and answer.status != expect:
            self.wrong.append(f"{said}\n    expected {expect}")
        return answer

    def table(self):
        """A line per operation: every status of the document, and how often it was answered."""
        lines = {}
        for service, operation, status in sorted(self.document.pairs()):
            lines.setdefault((service, operation), []).append(f"{status}:{self.answered[service, operation, status]}")
        return [f"{service:11} {operation:55} {' '.join(counts)}" for (service, operation), counts in lines.items()]

    def unasked(self):
        missing = self.document.pairs() - set(self.answered)
        said = lambda pair: " ".join(map(str, pair))
        return [f"never answered: {said(pair)}" for pair in sorted(missing - set(NOT_ASKED))] + [
            f"is asked, or not in the document: {said(pair)}" for pair in sorted(set(NOT_ASKED) - missing)
        ]


def compare_routes(contract, service):
    """The router's own table against the document's."""
    listed = {(route["method"], route["path"], route["role"]) for route in service.ask("GET", "/v1").json()["routes"]}
    documented = contract.document.route_patterns(service.kind)
    for route in sorted(listed ^ documented):
        where = "the document has not" if route in listed else "the router has not"
        contract.wrong.append(f"{service.kind}: {where} {route}")


def common(contract, service, served):
    ask = lambda *arguments, **named: contract.ask(service, *arguments, **named)
    for path in ("/healthz", "/livez", "/readyz", "/metrics", "/v1", "/"):
        ask("GET", path, expect=200)
        ask("HEAD", path, expect=200)
    answer = ask("GET", "/openapi.json", expect=200)
    if answer.body.decode() != served:
        contract.wrong.append(f"{service.kind} serves another document")
    ask("GET", "/openapi.json", headers={"If-None-Match": answer.headers["ETag"]}, expect=304)
    ask("GET", "/problems/nonsense", expect=404)
    table = (ROOT / "docs/reference/problems.md").read_text()
    for line in table.splitlines():
        if line.startswith("| `"):
            code, (cause, remedy) = line.split("`")[1], line.removesuffix(" |").rsplit(" | ", 2)[1:]
            page = ask("GET", f"/problems/{code}", expect=200).body.decode()
            if " ".join(page.split("\n\n", 1)[-1].split()) != " ".join(f"Cause: {cause} Remedy: {remedy}".split()):
                contract.wrong.append(f"{service.kind}: the page of {code} and docs/reference/problems.md differ")


def types_resolve(contract, fleet):
    """The type of a problem is a page of the service that answered."""
    for service in fleet.services:
        problem = service.ask("GET", "/v1/groups/nothing").json()
        contract.ask(service, "GET", problem["type"], expect=200)


def own_network():
    """Runs this again in a network of its own, where an address that is not loopback is this machine's, too."""
    if os.environ.get("CHORUS_CONTRACT_NETWORK") != "own":
        os.environ["CHORUS_CONTRACT_NETWORK"] = "own"
        os.execvp("unshare", ["unshare", "--map-root-user", "--net", sys.executable, *sys.argv])
    for command in ("ip link set lo up", f"ip address add {ELSEWHERE}/32 dev lo"):
        subprocess.run(command.split(), check=True)


def main(binaries, failing_allocation, path=ROOT / "docs" / "openapi.json"):
    own_network()
    served = pathlib.Path(path).read_text()
    contract = Contract(Document(served))
    shared = ["--allow-client-shm", "--checkpoint-directory"]
    with Fleet(binaries, 0) as empty:
        directory = empty.path
        (directory / "checkpoints").mkdir()
        everywhere(contract, binaries, empty, failing_allocation, directory)
        with Fleet(binaries, 2, worker_flags=[*shared, str(directory / "checkpoints")]) as fleet:
            for service in fleet.services[:2]:
                compare_routes(contract, service)
                common(contract, service, served)
            coordinator(contract, fleet)
            tensors(contract, fleet.workers[0])
            client_memory(contract, fleet.workers[0])
            parameter_data(contract, fleet.workers[0])
            of_several_shards(contract, fleet)
            checkpoints(contract, fleet)
            probes(contract, fleet)
            with_guest(contract, fleet)
            types_resolve(contract, fleet)
            runs(contract, fleet.workers[1])
            shards(contract, fleet.workers[1], fleet.coordinator.ask("GET", "/v1/parameters/w").json())
            calls(contract, fleet.workers[1])
            if any(service.process.poll() is not None for service in fleet.services):
                contract.wrong.append("a service has ended: " + fleet.said()[-2000:])
        with Fleet(binaries, 1, ["--drain-ms", "20000"]) as plain:
            without_directories(contract, plain)
            draining(contract, plain)
    findings = contract.wrong + contract.unasked()
    excused = [f"not asked: {' '.join(map(str, pair))}: {why}" for pair, why in NOT_ASKED.items()]
    print("\n".join(contract.table() + excused + findings))
    print(f"contract: {contract.asked} answers, {len(set(contract.answered))} of {len(contract.document.pairs())} pairs of "
          f"operation and status, {len(findings)} findings")  # fmt: skip
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
