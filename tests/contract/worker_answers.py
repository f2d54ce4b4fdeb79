"""What a worker answers: tensors, memory of clients, groups, runs, links."""

import contextlib
import os
import pathlib
import socket
import struct
import threading

ROOT = pathlib.Path(__file__).resolve().parents[2]
OCTETS = {"Content-Type": "application/octet-stream"}
UPLOAD = {**OCTETS, "Tensor-Dtype": "f32", "Tensor-Shape": "4"}
FLOATS = struct.pack("<4f", 1, 2, 3, 4)
TOKEN = "0000000000000001"


def tensors(contract, worker):
    ask = lambda *arguments, **named: contract.ask(worker, *arguments, **named)
    etag = ask("PUT", "/v1/tensors/deep/name", FLOATS, UPLOAD, expect=201).headers["ETag"]
    ask("PUT", "/v1/tensors/deep/name", FLOATS, {**UPLOAD, "If-Match": '"nothing"'}, expect=412)
    ask("PUT", "/v1/tensors/deep/name", FLOATS[:8], UPLOAD, expect=422)
    ask("PUT", "/v1/tensors/deep/name", FLOATS, {**UPLOAD, "Content-Type": "text/html"}, expect=415)
    ask("PUT", "/v1/tensors/deep/name", FLOATS, {**UPLOAD, "Tensor-Dtype": "f33"}, expect=400)
    ask("PUT", "/v1/tensors/deep/name", FLOATS, {**UPLOAD, "Tensor-Device": "cuda:999"}, expect=400)
    ask("GET", "/v1/tensors/deep/name", headers={"Want-Repr-Digest": "sha-256=1"}, expect=200)
    ask("HEAD", "/v1/tensors/deep/name", expect=200)
    ask("GET", "/v1/tensors/deep/name", headers={"Range": "bytes=4-7"}, expect=206)
    ask("GET", "/v1/tensors/deep/name", headers={"Range": "bytes=99-"}, expect=416)
    ask("GET", "/v1/tensors/deep/name", headers={"If-None-Match": etag}, expect=304)
    ask("GET", "/v1/tensors/nothing", expect=404)
    ask("GET", "/v1/tensors/deep/name", headers={"If-Match": '"nothing"'}, expect=412)
    elsewhere = {"dtype": "f32", "shape": [4], "shm": {"region": "nothing", "offset": 0}}
    ask("PUT", "/v1/tensors/placed", elsewhere, {"Content-Type": "application/json"}, expect=404)
    described = "PUT /v1/tensors/large HTTP/1.1\r\nHost: 127.0.0.1\r\nTensor-Dtype: f32\r\nTensor-Shape: {}\r\n"
    for shape, length, expect in ((4, "X-No-Length: 1", 411), (1 << 56, f"Content-Length: {1 << 58}", 413)):
        contract.say(worker, "PUT", "/v1/tensors/large", described.format(shape) + length + "\r\n\r\n", expect)
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
        for path in ("/v1/shm/system/mine", "/v1/shm/cuda/mine"):
            endless = f"PUT {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 99999999999\r\n\r\n"
            contract.say(worker, "PUT", path, endless, expect=413)
        on_gpu = {"handle": "A" * 86 + "==", "device": "cuda:999", "offset": 0, "bytes": 16}
        ask("PUT", "/v1/shm/cuda/mine", on_gpu, expect=422)
        ask("GET", "/v1/shm/cuda/mine", expect=404)
        ask("GET", "/v1/shm/cuda?limit=1", expect=200)
        ask("DELETE", "/v1/shm/cuda/mine", expect=404)
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
        ask("PUT", "/v1/shm/system/mine", {**region, "bytes": 8}, expect=409)
        ask("DELETE", "/v1/shm/system/mine", expect=409)
        os.truncate(file, 8)
        ask("GET", "/v1/tensors/placed", expect=409)
        ask("DELETE", "/v1/tensors/placed", expect=204)
        ask("DELETE", "/v1/shm/system/mine", expect=204)
        ask("DELETE", "/v1/shm/system/mine", expect=404)
    finally:
        file.unlink()


def identity(worker):
    about = worker.ask("GET", "/v1").json()
    return {"rank": 0, "worker": about["worker"], "incarnation": about["incarnation"], "url": about["url"]}


def order(me, **more):
    """A run of a group that this worker is by itself, unless said otherwise."""
    return {
        "run": 7, "group": "solo", "epoch": 3, "token": TOKEN, "op": "all_reduce", "algorithm": "ring", "rank": 0,
        "members": [me], "tensor": "solo", "version": 1, "dtype": "f32", "elements": 4, "reduce": "sum", **more,
    }  # fmt: skip


@contextlib.contextmanager
def silent_peer():
    """A member that takes every connection and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        yield {"rank": 1, "worker": "silent", "incarnation": "0123456789abcdef", "url": url}


def runs(contract, worker):
    """What the coordinator asks of a worker, asked of one that is a group by itself."""
    ask = lambda *arguments, **named: contract.ask(worker, *arguments, **named)
    me = identity(worker)
    addressee = {"worker": me["worker"], "incarnation": me["incarnation"]}
    group = {"name": "solo", "epoch": 3, "state": "ready", "members": [me],
             "selection": [{"op": "barrier", "algorithm": "dissemination"}]}
    ask("PUT", "/v1/groups/solo", {"group": group, "token": TOKEN, **addressee}, expect=204)
    ask("PUT", "/v1/groups/solo", {"group": {**group, "epoch": 2}, "token": TOKEN, **addressee}, expect=409)
    ask("PUT", "/v1/groups/solo", {"group": group}, expect=422)
    ask("GET", "/v1/groups?limit=1", expect=200)
    ask("GET", "/v1/groups/solo", expect=200)
    ask("GET", "/v1/groups/nothing", expect=404)
    ask("POST", "/v1/groups/solo/barrier", {}, expect=200)
    ask("POST", "/v1/groups/solo/barrier", {"sequence": 0}, expect=409)
    ask("POST", "/v1/groups/solo/barrier", {"epoch": 3, "sequence": 1}, {"Idempotency-Key": "k1"}, expect=200)
    ask("POST", "/v1/groups/solo/barrier", {"epoch": 3, "sequence": 1}, {"Idempotency-Key": "k1"}, expect=200)
    ask("POST", "/v1/groups/solo/barrier", {}, {"Idempotency-Key": "k1"}, expect=422)
    ask("POST", "/v1/groups/nothing/barrier", {}, expect=404)
    ask("POST", "/v1/groups/solo/all_reduce", {"tensor": "nothing"}, expect=404)
    ask("POST", "/v1/groups/solo/all_reduce", {"tensor": 1}, expect=422)
    nowhere = {"format": "int8", "between": "nowhere"}
    ask("POST", "/v1/groups/solo/all_reduce", {"tensor": "solo", "compression": nowhere}, expect=422)
    nothing = {"format": "auto", "allow": []}
    ask("POST", "/v1/groups/solo/all_reduce", {"tensor": "solo", "compression": nothing}, expect=422)

    version = int(ask("PUT", "/v1/tensors/solo", FLOATS, UPLOAD, expect=201).headers["Tensor-Version"])
    run = order(me, version=version)
    ask("POST", "/v1/groups/solo/all_reduce", {"tensor": "solo"}, expect=501)  # its table has no line for it
    ask("POST", "/v1/groups/solo/all_reduce", {"tensor": "solo", "compression": "auto"}, expect=501)
    ask("PUT", "/v1/runs/7", run, expect=200)
    ask("PUT", "/v1/runs/7", {**run, "reduce": "max"}, expect=422)
    ask("PUT", "/v1/runs/8", run, expect=422)
    ask("PUT", "/v1/runs/x", run, expect=400)
    ask("PUT", "/v1/runs/10", {**run, "run": 10, "tensor": "nothing"}, expect=404)
    ask("PUT", "/v1/runs/10", {**run, "run": 10, "epoch": 2}, expect=409)
    ask("PUT", "/v1/runs/10", {**run, "run": 10, "reduce": "band"}, expect=501)
    ask("GET", "/v1/runs/7", expect=200)
    ask("GET", "/v1/runs/7/progress", expect=200)
    ask("GET", "/v1/runs/99/progress", expect=404)
    ask("GET", "/v1/runs/99", expect=404)
    ask("POST", "/v1/runs/7/commit", expect=200)
    ask("POST", "/v1/runs/99/commit", expect=404)
    ask("DELETE", "/v1/runs/7", expect=409)
    ask("PUT", "/v1/runs/9", {**run, "run": 9, "version": version + 1}, expect=200)
    ask("DELETE", "/v1/runs/9", expect=204)
    ask("POST", "/v1/runs/9/commit", expect=409)
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
    with silent_peer() as silent:
        runs_that_fail(contract, worker, order(me, version=version + 1, elements=4), silent)


def runs_that_fail(contract, worker, run, silent):
    """One whose peer is silent, and one whose peer is not there: both end with a report, and cannot be committed."""
    ask = lambda *arguments, **named: contract.ask(worker, *arguments, **named)
    me = run["members"][0]
    slow = {**run, "run": 11, "members": [me, silent], "timeout_ms": 1500, "in_place": True}
    asked = threading.Thread(target=lambda: ask("PUT", "/v1/runs/11", slow, expect=200))
    asked.start()
    while worker.ask("GET", "/v1/runs/11/progress").json().get("state") != "running":
        os.sched_yield()
    ask("PUT", "/v1/tensors/solo", FLOATS, UPLOAD, expect=409)
    ask("DELETE", "/v1/tensors/solo", expect=409)
    asked.join()
    ask("POST", "/v1/runs/11/commit", expect=504)
    gone = {**silent, "worker": "gone", "url": "http://127.0.0.1:1"}
    now = int(worker.ask("HEAD", "/v1/tensors/solo").headers["Tensor-Version"])
    ask("PUT", "/v1/runs/12", {**run, "run": 12, "version": now, "members": [me, gone], "timeout_ms": 20000}, expect=200)
    ask("POST", "/v1/runs/12/commit", expect=502)


def calls(contract, worker):
    """What members ask of their own worker, where the other one does not come."""
    ask = lambda *arguments, **named: contract.ask(worker, *arguments, **named)
    me = identity(worker)
    with silent_peer() as silent:
        for name, peer, expect in (("slow", silent, 504), ("gone", {**silent, "url": "http://127.0.0.1:1"}, 502)):
            group = {"name": name, "epoch": 1, "state": "ready", "members": [me, {**peer, "worker": name}],
                     "selection": [{"op": "barrier", "algorithm": "dissemination"}]}
            assignment = {"group": group, "token": TOKEN, "worker": me["worker"], "incarnation": me["incarnation"]}
            ask("PUT", f"/v1/groups/{name}", assignment, expect=204)
            ask("POST", f"/v1/groups/{name}/barrier", {"timeout_ms": 500 if expect == 504 else 20000}, expect=expect)
            ask("POST", f"/v1/groups/{name}/barrier", {}, expect=409)


def link_protocol():
    """As worker/links has it."""
    for line in (ROOT / "worker" / "links" / "handshake.hpp").read_text().splitlines():
        if "link_protocol =" in line:
            return line.split('"')[1]
    raise RuntimeError("worker/links/handshake.hpp does not name the protocol")


def probes(contract, fleet):
    other = {"worker": "w1", "url": fleet.workers[1].url}
    contract.ask(fleet.workers[0], "POST", "/v1/probes", other, expect=200)
    contract.ask(fleet.workers[0], "POST", "/v1/probes", {**other, "url": "http://127.0.0.1:1"}, expect=403)
    contract.ask(fleet.workers[0], "POST", "/v1/probes", {**other, "url": other["url"] + "/path"}, expect=422)
