#!/usr/bin/env python3
"""Every operation of docs/openapi.json, asked of real services in good and in bad ways: status, header fields, media type and
body of each answer have to be as the document says. Fails where an operation was never answered well, or never refused.

    tests/contract/contract.py BINARIES [docs/openapi.json]
"""

import os
import pathlib
import struct
import subprocess
import sys

from document import Document
from services import Fleet

ROOT = pathlib.Path(__file__).resolve().parents[2]
OCTETS = {"Content-Type": "application/octet-stream"}
UPLOAD = {**OCTETS, "Tensor-Dtype": "f32", "Tensor-Shape": "4"}
FLOATS = struct.pack("<4f", 1, 2, 3, 4)


class Contract:
    def __init__(self, document):
        self.document = document
        self.good, self.bad = set(), set()
        self.wrong = []
        self.asked = 0

    def ask(self, service, method, path, body=None, headers=None, expect=None, stream_bytes=None):
        answer = service.ask(method, path, body, headers, stream_bytes)
        self.asked += 1
        said = f"{service.kind}: {method} {path} -> {answer.status} {answer.body[:300]!r}"
        try:
            key = self.document.check(service.kind, method, path, answer)
            (self.good if answer.status < 400 else self.bad).add(key)
        except Exception as error:  # every kind of disagreement is reported, and the next request is asked
            self.wrong.append(f"{said}\n    {str(error)[:600]}")
        if expect is not None and answer.status != expect:
            self.wrong.append(f"{said}\n    expected {expect}")
        return answer

    def unasked(self):
        keys = {(service, operation["operationId"]) for (service, _, _), operation in self.document.operations.items()}
        return [f"never answered well: {key}" for key in sorted(keys - self.good)] + [
            f"never refused: {key}" for key in sorted(keys - self.bad)
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
    table = (ROOT / "docs" / "problems.md").read_text()
    for line in table.splitlines():
        if line.startswith("| `"):
            code, advice = line.split("`")[1], line.split(" | ", 4)[4].removesuffix(" |")
            page = ask("GET", f"/problems/{code}", expect=200).body.decode()
            if " ".join(page.split("\n\n", 1)[-1].split()) != " ".join(advice.split()):
                contract.wrong.append(f"{service.kind}: the page of {code} and docs/problems.md differ")


def refused(contract, service):
    """What no operation takes: a name that is not the service's."""
    for (kind, method, path), _ in contract.document.operations.items():
        if kind == service.kind:
            contract.ask(service, method, filled(path), headers={"Host": "stranger.example"}, expect=421)


def filled(path):
    for name, value in {"{run}": "7", "{shard}": "0", "{array}": "values", "{op}": "barrier"}.items():
        path = path.replace(name, value)
    while "{" in path:
        path = path[: path.index("{")] + "x" + path[path.index("}") + 1 :]
    return path


def coordinator(contract, fleet):
    c, w0 = fleet.coordinator, fleet.workers[0]
    ask = lambda *arguments, **named: contract.ask(c, *arguments, **named)
    page = ask("GET", "/", expect=200).body.decode()
    asset = page.split("/ui/", 1)[1].split('"', 1)[0]
    etag = ask("GET", f"/ui/{asset}", expect=200).headers["ETag"]
    ask("GET", f"/ui/{asset}", headers={"If-None-Match": etag}, expect=304)
    ask("GET", "/ui/nothing", expect=404)
    ask("GET", "/v1/status", expect=200)
    ask("GET", "/v1/events", headers={"Accept": "application/json"}, expect=200)
    ask("GET", "/v1/events?since=0", stream_bytes=20, expect=200)
    ask("GET", "/v1/events?since=x", expect=400)
    ask("GET", "/v1/links", expect=200)

    guest = {"id": "guest", "incarnation": "0123456789abcdef", "url": w0.url}
    ask("POST", "/v1/workers", guest, expect=201)
    ask("POST", "/v1/workers", guest, expect=200)
    ask("POST", "/v1/workers", {**guest, "url": "http://127.0.0.1:1"}, expect=502)
    ask("POST", "/v1/workers", {"id": "guest"}, expect=422)
    ask("POST", "/v1/workers", "{", expect=400)
    ask("GET", "/v1/workers?limit=1", expect=200)
    ask("GET", "/v1/workers?limit=0", expect=400)
    ask("GET", "/v1/workers/guest", expect=200)
    ask("GET", "/v1/workers/nobody", expect=404)
    ask("POST", "/v1/workers/guest/probe", expect=200)
    ask("POST", "/v1/workers/nobody/probe", expect=404)
    ask("POST", "/v1/workers/guest/handover", expect=200)
    ask("POST", "/v1/workers/nobody/handover", expect=404)
    ask("PUT", "/v1/workers/guest/lease", {"incarnation": guest["incarnation"]}, expect=200)
    ask("PUT", "/v1/workers/guest/lease", {"incarnation": "0000000000000001"}, expect=409)
    ask("DELETE", "/v1/workers/guest?incarnation=" + guest["incarnation"], expect=204)
    ask("DELETE", "/v1/workers/guest", expect=404)

    ask("PUT", "/v1/groups/g", {"size": 2}, expect=201)
    ask("PUT", "/v1/groups/g", {"workers": ["w0", "w1"]}, expect=200)
    ask("PUT", "/v1/groups/g", {"size": 9}, expect=409)
    ask("PUT", "/v1/groups/g", {"workers": ["nobody"]}, expect=404)
    ask("PUT", "/v1/groups/g", {}, expect=422)
    ask("PUT", "/v1/groups/g", {"size": 2}, expect=200)
    ask("PUT", "/v1/groups/other", {"size": 1}, expect=201)
    ask("GET", "/v1/groups?limit=1", expect=200)
    ask("GET", "/v1/groups/g", expect=200)
    ask("GET", "/v1/groups/nothing", expect=404)
    ask("DELETE", "/v1/groups/other", expect=204)
    ask("DELETE", "/v1/groups/other", expect=404)

    demo = ask("POST", "/v1/demo", {"group": "g", "elements": 1000}, expect=202)
    ask("GET", demo.headers["Location"] + "?wait=20s", expect=200)
    ask("POST", "/v1/demo", {"elements": 0}, expect=422)
    ask("GET", "/v1/links/traffic?group=g", expect=200)
    ask("GET", "/v1/links/traffic?group=nothing", expect=404)

    for worker in fleet.workers:
        contract.ask(worker, "PUT", "/v1/tensors/x", FLOATS, UPLOAD, expect=201)
    launch = {"group": "g", "tensor": "x"}
    ask("POST", "/v1/collectives?validate_only=true", launch, expect=200)
    keyed = ask("POST", "/v1/collectives", launch, {"Idempotency-Key": "k1"}, expect=202)
    ask("POST", "/v1/collectives?wait=20s", launch, {"Idempotency-Key": "k1"}, expect=200)
    ask("POST", "/v1/collectives", {**launch, "reduce": "max"}, {"Idempotency-Key": "k1"}, expect=422)
    ask("PUT", "/v1/collectives/mine?wait=20s", launch, expect=200)
    ask("PUT", "/v1/collectives/mine", {**launch, "reduce": "max"}, expect=409)
    ask("PUT", "/v1/collectives/other", {**launch, "op": "barrier", "tensor": ""}, expect=202)
    ask("POST", "/v1/collectives?wait=20s", {"group": "g", "tensor": "nothing"}, expect=404)
    ask("POST", "/v1/collectives?wait=20s", {"group": "nothing", "tensor": "x"}, expect=404)
    ask("POST", "/v1/collectives?wait=forever", launch, expect=400)
    ask("POST", "/v1/collectives", {**launch, "nonsense": 1}, expect=422)
    location = keyed.headers["Location"]
    ask("GET", location + "?wait=20s", expect=200)
    ask("GET", location + "?wait=x", expect=400)
    ask("GET", location + "/trace", expect=200)
    ask("GET", "/v1/collectives/nothing/trace", expect=404)
    ask("GET", "/v1/collectives?limit=1", expect=200)
    ask("GET", "/v1/collectives?limit=x", expect=400)
    ask("DELETE", location, expect=200)
    ask("DELETE", "/v1/collectives/nothing", expect=404)
    ask("POST", "/v1/plans", {"ranks": 4, "bytes": 1024}, expect=200)
    ask("POST", "/v1/plans", {"group": "nothing", "bytes": 1024}, expect=404)
    ask("POST", "/v1/plans", {"ranks": 4, "bytes": 1024, "algorithm": "nonsense"}, expect=422)
    ask("POST", "/v1/simulations", {"ranks": 8, "bytes": 1024, "algorithm": "all"}, expect=200)
    ask("POST", "/v1/simulations", {"ranks": 0}, expect=422)

    parameter = {"group": "g", "shape": [4], "shards": 1, "replicas": 1}
    ask("PUT", "/v1/parameters/w", parameter, expect=201)
    ask("PUT", "/v1/parameters/w", parameter, expect=200)
    ask("PUT", "/v1/parameters/w", {**parameter, "shape": [5]}, expect=409)
    ask("PUT", "/v1/parameters/v", {**parameter, "optimizer": {"name": "nonsense"}}, expect=422)
    ask("PUT", "/v1/parameters/rows", {**parameter, "shape": [4, 2], "optimizer": {"name": "sgd"}}, expect=201)
    ask("PUT", "/v1/parameters/lazy", {**parameter, "shape": [1 << 40, 2], "lazy_rows": 2}, expect=201)
    ask("PUT", "/v1/parameters/v", {**parameter, "lazy_rows": 0}, expect=422)
    ask("PUT", "/v1/parameters/v", {**parameter, "durability": "log"}, expect=501)
    ask("PUT", "/v1/parameters/v", {**parameter, "durability": "nonsense"}, expect=422)
    ask("GET", "/v1/parameters?limit=1", expect=200)
    ask("GET", "/v1/parameters/w", expect=200)
    ask("GET", "/v1/parameters/nothing", expect=404)
    ask("GET", "/v1/parameters/w/shards", expect=200)
    ask("GET", "/v1/parameters/nothing/shards", expect=404)
    ask("POST", "/v1/checkpoints", {"name": "nightly"}, expect=201)
    ask("POST", "/v1/checkpoints", {"name": "nightly", "parameters": ["nothing"]}, expect=404)
    ask("PUT", "/v1/parameters/gone", parameter, expect=201)
    ask("DELETE", "/v1/parameters/gone", expect=204)
    ask("DELETE", "/v1/parameters/gone", expect=404)


def tensors(contract, worker):
    ask = lambda *arguments, **named: contract.ask(worker, *arguments, **named)
    etag = ask("PUT", "/v1/tensors/deep/name", FLOATS, UPLOAD, expect=201).headers["ETag"]
    ask("PUT", "/v1/tensors/deep/name", FLOATS, {**UPLOAD, "If-Match": '"nothing"'}, expect=412)
    ask("PUT", "/v1/tensors/deep/name", FLOATS[:8], UPLOAD, expect=422)
    ask("PUT", "/v1/tensors/deep/name", FLOATS, {**UPLOAD, "Content-Type": "text/html"}, expect=415)
    ask("PUT", "/v1/tensors/deep/name", FLOATS, {**UPLOAD, "Tensor-Dtype": "f33"}, expect=400)
    ask("GET", "/v1/tensors/deep/name", headers={"Want-Repr-Digest": "sha-256=1"}, expect=200)
    ask("HEAD", "/v1/tensors/deep/name", expect=200)
    ask("GET", "/v1/tensors/deep/name", headers={"Range": "bytes=4-7"}, expect=206)
    ask("GET", "/v1/tensors/deep/name", headers={"Range": "bytes=99-"}, expect=416)
    ask("GET", "/v1/tensors/deep/name", headers={"If-None-Match": etag}, expect=304)
    ask("GET", "/v1/tensors/nothing", expect=404)
    ask("GET", "/v1/tensors?prefix=deep&limit=1", expect=200)
    ask("GET", "/v1/tensors?limit=x", expect=400)
    ask("PUT", "/v1/tensors/deep/name", FLOATS, UPLOAD, expect=200)
    ask("DELETE", "/v1/tensors/deep/name", headers={"If-Match": etag}, expect=412)
    ask("DELETE", "/v1/tensors/deep/name", expect=204)
    ask("DELETE", "/v1/tensors/deep/name", expect=404)


def client_memory(contract, worker):
    ask = lambda *arguments, **named: contract.ask(worker, *arguments, **named)
    key = f"/chorus_contract_{os.getpid()}"
    file = pathlib.Path("/dev/shm" + key)
    file.write_bytes(FLOATS)
    file.chmod(0o666)
    try:
        region = {"key": key, "offset": 0, "bytes": 16}
        ask("PUT", "/v1/shm/system/mine", region, expect=201)
        ask("PUT", "/v1/shm/system/mine", region, expect=200)
        ask("PUT", "/v1/shm/system/mine", {**region, "bytes": 99}, expect=422)
        place = {"dtype": "f32", "shape": [4], "shm": {"region": "mine", "offset": 0}}
        ask("PUT", "/v1/tensors/placed", place, {"Content-Type": "application/json"})
        ask("GET", "/v1/tensors", expect=200)
        ask("GET", "/v1/shm/system/mine", expect=200)
        ask("GET", "/v1/shm/system/nothing", expect=404)
        ask("GET", "/v1/shm/system?limit=1", expect=200)
        ask("DELETE", "/v1/shm/system/mine", expect=409)
        ask("DELETE", "/v1/tensors/placed", expect=204)
        ask("DELETE", "/v1/shm/system/mine", expect=204)
        ask("DELETE", "/v1/shm/system/mine", expect=404)
    finally:
        file.unlink()


def alone(contract, worker):
    """What the coordinator and members ask of a worker, asked of one that is a group by itself."""
    ask = lambda *arguments, **named: contract.ask(worker, *arguments, **named)
    about = worker.ask("GET", "/v1").json()
    me = {"rank": 0, "worker": about["worker"], "incarnation": about["incarnation"], "url": about["url"]}
    addressee = {"worker": me["worker"], "incarnation": me["incarnation"]}
    token = "0000000000000001"
    group = {"name": "solo", "epoch": 3, "state": "ready", "members": [me],
             "selection": [{"op": "barrier", "algorithm": "dissemination"}]}
    ask("PUT", "/v1/groups/solo", {"group": group, "token": token, **addressee}, expect=204)
    ask("PUT", "/v1/groups/solo", {"group": {**group, "epoch": 2}, "token": token, **addressee}, expect=409)
    ask("PUT", "/v1/groups/solo", {"group": group}, expect=422)
    ask("GET", "/v1/groups?limit=1", expect=200)
    ask("GET", "/v1/groups/solo", expect=200)
    ask("GET", "/v1/groups/nothing", expect=404)
    ask("POST", "/v1/groups/solo/barrier", {}, expect=200)
    ask("POST", "/v1/groups/nothing/barrier", {}, expect=404)
    ask("POST", "/v1/groups/solo/all_reduce", {"tensor": "nothing"}, expect=404)
    ask("POST", "/v1/groups/solo/all_reduce", {"tensor": 1}, expect=422)

    version = int(ask("PUT", "/v1/tensors/solo", FLOATS, UPLOAD, expect=201).headers["Tensor-Version"])
    run = {
        "run": 7, "group": "solo", "epoch": 3, "token": token, "op": "all_reduce", "algorithm": "ring", "rank": 0,
        "members": [me], "tensor": "solo", "version": version, "dtype": "f32", "elements": 4, "reduce": "sum",
    }  # fmt: skip
    ask("PUT", "/v1/runs/7", run, expect=200)
    ask("PUT", "/v1/runs/8", run, expect=422)
    ask("PUT", "/v1/runs/x", run, expect=400)
    ask("GET", "/v1/runs/7", expect=200)
    ask("GET", "/v1/runs/7/progress", expect=200)
    ask("GET", "/v1/runs/99/progress", expect=404)
    ask("GET", "/v1/runs/99", expect=404)
    ask("POST", "/v1/runs/7/commit", expect=200)
    ask("POST", "/v1/runs/99/commit", expect=404)
    ask("PUT", "/v1/runs/9", {**run, "run": 9, "version": version + 1}, expect=200)
    ask("DELETE", "/v1/runs/9", expect=204)
    ask("DELETE", "/v1/runs/x", expect=400)
    ask("GET", "/v1/flight?run=7", expect=200)
    ask("GET", "/v1/flight?run=x", expect=400)
    ask("GET", "/v1/progress", expect=200)
    ask("GET", "/v1/clock", expect=200)
    ask("GET", "/v1/links", expect=200)
    ask("GET", "/v1/probe?bytes=10", expect=200)
    ask("GET", "/v1/probe?bytes=x", expect=400)
    stranger = {"Chorus-Worker": "stranger", "Chorus-Incarnation": "0123456789abcdef"}
    ask("GET", "/v1/link", headers={"Connection": "Upgrade", "Upgrade": link_protocol(), **stranger}, expect=101)
    ask("GET", "/v1/link", headers=stranger, expect=400)
    return me


def link_protocol():
    """As worker/links has it."""
    for line in (ROOT / "worker" / "links" / "handshake.hpp").read_text().splitlines():
        if "link_protocol =" in line:
            return line.split('"')[1]
    raise RuntimeError("worker/links/handshake.hpp does not name the protocol")


def shards(contract, worker, me, parameter):
    ask = lambda *arguments, **named: contract.ask(worker, *arguments, **named)
    shard = "/v1/parameters/mirror/shards/0"
    order = {
        "parameter": {**parameter, "name": "mirror", "endpoints": []}, "shard": 0, "begin": 0, "end": 4, "epoch": 1,
        "role": "backup", "worker": me["worker"], "incarnation": me["incarnation"],
    }  # fmt: skip
    ask("PUT", shard, order, expect=204)
    ask("PUT", shard, {**order, "incarnation": "0000000000000001"}, expect=409)
    ask("PUT", "/v1/parameters/mirror/shards/x", order, expect=400)
    outcomes = ask("POST", "/v1/shards", {"items": [order, {**order, "incarnation": "0" * 16}]}, expect=200).json()
    if [(outcome.get("error") or {}).get("code") for outcome in outcomes["items"]] != [None, "epoch_fenced"]:
        contract.wrong.append(f"POST /v1/shards: {outcomes}")
    ask("POST", "/v1/shards", {"items": [{}]}, expect=422)
    ask("GET", shard, expect=200)
    ask("GET", "/v1/parameters/nothing/shards/0")
    epoch = {"Chorus-Epoch": "1"}
    ask("PUT", shard + "/arrays/values?image=1&offset=0&bytes=16", FLOATS, epoch, expect=204)
    ask("PUT", shard + "/arrays/values?image=1&offset=8&bytes=16", FLOATS, epoch, expect=409)
    ask("POST", shard + "/state?image=1", {"version": 3, "position": 5}, epoch, expect=204)
    ask("POST", shard + "/state?image=1", {"version": 3, "position": 5}, epoch, expect=409)
    ask("POST", shard + "/complete", headers={**epoch, "Chorus-Position": "5"}, expect=204)
    ask("POST", shard + "/complete", headers={**epoch, "Chorus-Position": "9"}, expect=409)
    push = {**OCTETS, **epoch, "Chorus-Kind": "gradient", "Chorus-Client": "a", "Chorus-Sequence": "0"}
    ask("POST", shard + "/log", FLOATS, {**push, "Chorus-Position": "5"}, expect=204)
    ask("POST", shard + "/log", FLOATS, push, expect=400)
    ask("DELETE", shard + "?epoch=1", expect=204)
    ask("DELETE", "/v1/parameters/mirror/shards/x", expect=400)


def parameter_data(contract, worker):
    ask = lambda *arguments, **named: contract.ask(worker, *arguments, **named)
    w, rows = "/v1/parameters/w", "/v1/parameters/rows"

    def push(sequence, **more):
        return {**OCTETS, "Chorus-Client": "a", "Chorus-Sequence": str(sequence), **more}

    ask("GET", "/v1/parameters?limit=1", expect=200)
    ask("GET", w, expect=200)
    ask("GET", "/v1/parameters/nothing", expect=404)
    ask("POST", w + "/gradient", FLOATS, push(0), expect=200)
    ask("POST", w + "/gradient", FLOATS, push(0), expect=200)
    ask("POST", w + "/gradient?timeout_ms=50", FLOATS, push(9), expect=504)
    ask("POST", w + "/gradient", FLOATS[:8], push(1), expect=422)
    ask("PUT", w + "/value", FLOATS, push(1), expect=200)
    ask("PUT", w + "/value", FLOATS[:8], push(2), expect=422)
    ask("POST", w + "/push_pull", FLOATS, push(2), expect=200)
    ask("POST", w + "/push_pull", FLOATS, {**push(3), "Content-Type": "text/html"}, expect=415)
    etag = ask("GET", w + "/value", expect=200).headers["ETag"]
    ask("HEAD", w + "/value", expect=200)
    ask("GET", w + "/value", headers={"If-None-Match": etag}, expect=304)
    ask("GET", w + "/value", headers={"Range": "bytes=0-3"}, expect=206)
    ask("GET", w + "/value", headers={"Range": "bytes=99-"}, expect=416)
    ask("GET", w + "/value?min_version=99&timeout_ms=50", expect=504)
    numbers = struct.pack("<2Q", 1, 3)
    ask("POST", rows + "/rows", numbers, {**OCTETS, "Chorus-Rows": "2"}, expect=200)
    ask("POST", rows + "/rows", numbers, {**OCTETS, "Chorus-Rows": "3"}, expect=422)
    ask("POST", rows + "/rows/gradient", numbers + FLOATS, push(0, **{"Chorus-Rows": "2"}), expect=200)
    lazy = "/v1/parameters/lazy"
    ask("GET", lazy + "/value", expect=501)
    ask("POST", lazy + "/rows", struct.pack("<2Q", 1, 1 << 39), {**OCTETS, "Chorus-Rows": "2"}, expect=200)
    ask("POST", lazy + "/rows/gradient", numbers + FLOATS, push(0, **{"Chorus-Rows": "2"}), expect=200)
    ask("POST", lazy + "/rows/gradient", struct.pack("<Q", 7) + FLOATS[:8], push(1, **{"Chorus-Rows": "1"}), expect=507)
    ask("POST", rows + "/rows/gradient", numbers, push(1, **{"Chorus-Rows": "2"}), expect=422)


def checkpoints(contract, fleet):
    owner = fleet.coordinator.ask("GET", "/v1/parameters/w").json()["endpoints"][0]["worker"]
    worker = fleet.workers[int(owner[1:])]
    ask = lambda *arguments, **named: contract.ask(worker, *arguments, **named)
    number = ask("POST", "/v1/checkpoints/weekly/numbers", expect=200).json()["number"]
    ask("POST", "/v1/checkpoints/.../numbers")
    places = {"number": number, "timeout_ms": 1000, "items": [{"parameter": "w", "shard": 0, "clients": []}]}
    held = ask("POST", "/v1/checkpoints/weekly/holds", places, expect=200).json()
    ask("POST", "/v1/checkpoints/weekly/images", {**held, "number": number}, expect=200)
    ask("POST", "/v1/checkpoints/weekly/images", places, expect=409)
    ask("POST", "/v1/checkpoints/weekly/holds", {**places, "items": [{"parameter": "nothing", "shard": 0}]})
    file = {"number": number, "shards": [{"parameter": "w", "shard": 0}]}
    part = ask("POST", "/v1/checkpoints/weekly/files", file, expect=200).json()["manifest"]
    ask("POST", "/v1/checkpoints/weekly/files", {**file, "shards": [{"parameter": "nothing", "shard": 0}]})
    ask("POST", "/v1/checkpoints/weekly/commit", {"number": number, "parts": [part]}, expect=204)
    ask("POST", "/v1/checkpoints/weekly/commit", {"number": number, "parts": ["{}"]})
    ask("GET", "/v1/checkpoints/weekly", expect=200)


def probes(contract, fleet):
    other = {"worker": "w1", "url": fleet.workers[1].url}
    contract.ask(fleet.workers[0], "POST", "/v1/probes", other, expect=200)
    contract.ask(fleet.workers[0], "POST", "/v1/probes", {**other, "url": "http://127.0.0.1:1"}, expect=403)


def types_resolve(contract, fleet):
    """The type of a problem is a page of the service that answered."""
    for service in fleet.services:
        problem = service.ask("GET", "/v1/groups/nothing").json()
        contract.ask(service, "GET", problem["type"], expect=200)


def roles(contract, binaries, directory):
    """Without a token and with a token that is not enough: the roles of the document are those of the services."""
    tokens = f"{directory}/tokens.jsonl"

    def create(role):
        command = [f"{binaries}/chorus", "token", "create", "--file", tokens, "--role", role, "--id", role]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[0]

    badge = {role: {"Authorization": "Bearer " + create(role)} for role in ("read", "submit", "join")}
    below = {"submit": "read", "join": "submit"}
    pathlib.Path(f"{directory}/service.token").write_text(badge["join"]["Authorization"].split()[1] + "\n")
    flags = ["--auth-tokens", tokens, "--token-file", f"{directory}/service.token", "--rate-limit", "100000"]
    with Fleet(binaries, 1, flags, flags) as fleet:
        for service in fleet.services[:2]:
            for (kind, method, path), operation in contract.document.operations.items():
                if kind != service.kind:
                    continue
                role = operation["x-role"][kind]
                if role == "open":
                    if service.ask(method, filled(path)).status == 401:
                        contract.wrong.append(f"{kind}: {method} {path} is open, and asks for a token")
                    continue
                contract.ask(service, method, filled(path), headers={}, expect=401)
                if role in below:
                    contract.ask(service, method, filled(path), headers=badge[below[role]], expect=403)


def main(binaries, path=ROOT / "docs" / "openapi.json"):
    served = pathlib.Path(path).read_text()
    contract = Contract(Document(served))
    shared = ["--allow-client-shm", "--checkpoint-directory"]
    with Fleet(binaries, 0) as empty:
        directory = empty.path
        (directory / "checkpoints").mkdir()
        with Fleet(binaries, 2, worker_flags=[*shared, str(directory / "checkpoints")]) as fleet:
            for service in fleet.services[:2]:
                compare_routes(contract, service)
                common(contract, service, served)
                refused(contract, service)
            coordinator(contract, fleet)
            tensors(contract, fleet.workers[0])
            client_memory(contract, fleet.workers[0])
            parameter_data(contract, fleet.workers[0])
            checkpoints(contract, fleet)
            probes(contract, fleet)
            types_resolve(contract, fleet)
            me = alone(contract, fleet.workers[1])
            shards(contract, fleet.workers[1], me, fleet.coordinator.ask("GET", "/v1/parameters/w").json())
            if any(service.process.poll() is not None for service in fleet.services):
                contract.wrong.append("a service has ended: " + fleet.said()[-2000:])
        roles(contract, binaries, directory)
    findings = contract.wrong + contract.unasked()
    print("\n".join(findings))
    print(f"contract: {contract.asked} answers of {len(contract.document.operations)} operations, {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
