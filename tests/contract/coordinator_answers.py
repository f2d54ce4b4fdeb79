"""What a coordinator answers: workers, groups, collectives, parameters."""

import signal
import threading

from guest import Guest, hang_up, problem
from worker_answers import FLOATS, UPLOAD


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
    ask("PUT", "/v1/workers/guest/lease", {}, expect=422)
    ask("PUT", "/v1/workers/nobody/lease", {"incarnation": guest["incarnation"]}, expect=404)
    ask("POST", "/v1/workers/guest/handover?incarnation=0000000000000001", expect=409)
    ask("DELETE", "/v1/workers/guest?incarnation=0000000000000001", expect=409)
    ask("POST", "/v1/workers", {**guest, "incarnation": "0123456789abcdee"}, expect=200)
    ask("POST", "/v1/workers", guest, expect=409)
    guest["incarnation"] = "0123456789abcdee"
    lease = "/v1/workers/guest/lease"
    ask("DELETE", lease, expect=400)
    ask("DELETE", lease + "?incarnation=0000000000000001", expect=409)
    ask("DELETE", lease + "?incarnation=" + guest["incarnation"], expect=204)
    ask("DELETE", lease + "?incarnation=" + guest["incarnation"], expect=404)
    ask("POST", "/v1/workers", guest, expect=201)
    ask("DELETE", "/v1/workers/guest?incarnation=" + guest["incarnation"], expect=204)
    ask("DELETE", "/v1/workers/guest", expect=404)

    ask("PUT", "/v1/groups/g", {"size": 2}, expect=201)
    ask("PUT", "/v1/groups/g", {"workers": ["w0", "w1"]}, expect=200)
    ask("PUT", "/v1/groups/g", {"size": 9}, expect=409)
    ask("PUT", "/v1/groups/g", {"workers": ["nobody"]}, expect=404)
    ask("PUT", "/v1/groups/g", {}, expect=422)
    ask("PUT", "/v1/groups/g", {"size": 2}, expect=200)
    ask("GET", "/v1/groups/g/members/1", expect=200)
    ask("GET", "/v1/groups/g/members/2", expect=404)
    ask("GET", "/v1/groups/nobody/members/0", expect=404)
    ask("GET", "/v1/groups/g/members/one", expect=400)
    ask("PUT", "/v1/groups/g", {"size": 2, "order": "measured"}, expect=200)
    ask("PUT", "/v1/groups/g", {"size": 2, "order": "backwards"}, expect=422)
    ask("PUT", "/v1/groups/g", {"size": 33, "order": "measured"}, expect=422)
    ask("GET", "/v1/links?group=g", expect=200)
    ask("GET", "/v1/links?group=nothing", expect=404)
    ask("PUT", "/v1/groups/other", {"size": 1}, expect=201)
    ask("GET", "/v1/groups?limit=1", expect=200)
    ask("GET", "/v1/groups/g", expect=200)
    ask("GET", "/v1/groups/nothing", expect=404)
    ask("DELETE", "/v1/groups/other", expect=204)
    ask("DELETE", "/v1/groups/other", expect=404)

    numbers, key = {"group": "g", "elements": 1000}, {"Idempotency-Key": "d1"}
    demo = ask("POST", "/v1/demo", numbers, key, expect=202)
    ask("GET", demo.headers["Location"] + "?wait=20s", expect=200)
    again = ask("POST", "/v1/demo", numbers, key, expect=202)
    assert again.headers["Location"] == demo.headers["Location"], "a repetition has launched another demo"
    other = ask("POST", "/v1/demo", numbers, {"Idempotency-Key": "d2"}, expect=202)
    assert other.headers["Location"] != demo.headers["Location"], "another key has launched nothing"
    ask("POST", "/v1/demo", {**numbers, "elements": 1001}, key, expect=422)
    ask("POST", "/v1/demo", {"elements": 0}, expect=422)
    ask("POST", "/v1/demo", {"group": "nothing"}, expect=404)
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
    ask("PUT", "/v1/collectives/lost?wait=20s", {"group": "g", "tensor": "nothing"}, expect=404)
    ask("POST", "/v1/collectives", {**launch, "epoch": 99}, expect=409)
    ask("PUT", "/v1/collectives/x", {**launch, "nonsense": 1}, expect=422)
    ask("GET", "/v1/collectives/nothing", expect=404)
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
    ask("POST", "/v1/plans", {"topology": "hosts:2x2", "bytes": 1024}, expect=200)
    racks = {"topology": "racks:2x2x1", "bytes": 1024}
    ask("POST", "/v1/plans", {**racks, "compression": "int8"}, expect=200)
    ask("POST", "/v1/plans", {**racks, "compression": {"format": "int8", "between": "rack"}}, expect=200)
    automatic = {"format": "auto", "allow": ["bf16", "int8"]}
    ask("POST", "/v1/plans", {**racks, "compression": automatic}, expect=200)
    ask("POST", "/v1/plans", {**racks, "compression": {**automatic, "between": "rack"}}, expect=200)
    ask("POST", "/v1/plans", {**racks, "compression": {**automatic, "allow": []}}, expect=422)
    ask("POST", "/v1/plans", {**racks, "compression": {"format": "int8", "between": "world"}}, expect=422)
    ask("POST", "/v1/plans", {**racks, "compression": {"between": "rack"}}, expect=422)
    ask("POST", "/v1/plans", {**racks, "compression": 8}, expect=422)
    pair = {"bandwidth_gbyte_per_s": [[None, 50], [50, None]], "latency_us": [[None, 0.6], [0.6, None]]}
    ask("POST", "/v1/plans", {"links": pair, "bytes": 1024}, expect=200)
    ask("POST", "/v1/plans", {"links": {**pair, "latency_us": [[None, -1], [1, None]]}, "bytes": 1024}, expect=422)
    ask("POST", "/v1/simulations", {"links": pair, "bytes": 1024}, expect=200)
    ask("POST", "/v1/plans", {"group": "nothing", "bytes": 1024}, expect=404)
    ask("POST", "/v1/plans", {"ranks": 4, "bytes": 1024, "algorithm": "nonsense"}, expect=422)
    ask("POST", "/v1/simulations", {"ranks": 8, "bytes": 1024, "algorithm": "all"}, expect=200)
    ask("POST", "/v1/simulations", {"ranks": 0}, expect=422)

    parameter = {"group": "g", "shape": [4], "shards": 1, "replicas": 1}
    ask("PUT", "/v1/parameters/w", parameter, expect=201)
    ask("PUT", "/v1/parameters/w", parameter, expect=200)
    ask("PUT", "/v1/parameters/w", {**parameter, "shape": [5]}, expect=409)
    ask("PUT", "/v1/parameters/v", {**parameter, "optimizer": {"name": "nonsense"}}, expect=422)
    ask("PUT", "/v1/parameters/v", {**parameter, "group": "nothing"}, expect=404)
    ask("PUT", "/v1/parameters/rows", {**parameter, "shape": [4, 2], "optimizer": {"name": "sgd"}}, expect=201)
    ask("PUT", "/v1/parameters/lazy", {**parameter, "shape": [1 << 40, 2], "lazy_rows": 2}, expect=201)
    ask("PUT", "/v1/parameters/v", {**parameter, "lazy_rows": 0}, expect=422)
    ask("PUT", "/v1/parameters/v", {**parameter, "durability": "log"}, expect=501)
    ask("PUT", "/v1/parameters/v", {**parameter, "durability": "nonsense"}, expect=422)
    ask("PUT", "/v1/parameters/v", {**parameter, "device": "gpu0"}, expect=422)
    ask("GET", "/v1/parameters?limit=1", expect=200)
    ask("GET", "/v1/parameters/w", expect=200)
    ask("GET", "/v1/parameters/nothing", expect=404)
    ask("GET", "/v1/parameters/w/shards", expect=200)
    ask("GET", "/v1/parameters/nothing/shards", expect=404)
    ask("POST", "/v1/parameters/w/give-up", expect=200)
    ask("POST", "/v1/parameters/nothing/give-up", expect=404)
    ask("PUT", "/v1/parameters/w", {**parameter, "recreate": True}, expect=200)
    ask("POST", "/v1/checkpoints", {"name": "nightly"}, expect=201)
    keyed = [ask("POST", "/v1/checkpoints", {"name": "nightly"}, {"Idempotency-Key": "k1"}, expect=201) for _ in "ab"]
    assert keyed[0].json() == keyed[1].json(), "a repetition has made another checkpoint"
    ask("POST", "/v1/checkpoints", {"name": "other"}, {"Idempotency-Key": "k1"}, expect=422)
    ask("POST", "/v1/checkpoints", {"name": "nightly", "parameters": ["nothing"]}, expect=404)
    ask("POST", "/v1/checkpoints", {"name": 1}, expect=422)
    ask("PUT", "/v1/parameters/gone", parameter, expect=201)
    ask("DELETE", "/v1/parameters/gone", expect=204)
    ask("DELETE", "/v1/parameters/gone", expect=404)


def with_guest(contract, fleet):
    """What only workers that break bring a coordinator to say."""
    ask = lambda *arguments, **named: contract.ask(fleet.coordinator, *arguments, **named)
    with Guest("guest") as guest:
        refuse = lambda kind, part, status, code: setattr(
            guest, "answer", lambda method, path, _: problem(status, code) if method == kind and part in path else None
        )
        ask("POST", "/v1/workers", guest.introduction, expect=201)
        refuse("PUT", "/v1/groups/", 500, "internal")
        ask("PUT", "/v1/groups/odd", {"workers": ["guest"]}, expect=502)
        refuse("PUT", "/nothing", 500, "internal")
        ask("PUT", "/v1/groups/odd", {"workers": ["guest"]}, expect=200)
        launch = {"group": "odd", "tensor": "x"}
        refuse("HEAD", "/v1/tensors/", 500, "internal")
        ask("POST", "/v1/collectives?wait=20s", launch, expect=502)
        ask("PUT", "/v1/collectives/odd?wait=20s", launch, expect=502)
        enough = threading.Event()
        guest.answer = lambda method, *_: enough.wait(20) and None if method == "HEAD" else None
        ask("POST", "/v1/collectives?wait=20s", {**launch, "timeout_ms": 100}, expect=504)
        ask("PUT", "/v1/collectives/slow?wait=20s", {**launch, "timeout_ms": 100}, expect=504)
        enough.set()
        refuse("PUT", "/v1/tensors/", 409, "busy")
        ask("POST", "/v1/demo", {"group": "odd"}, expect=409)
        parameter = {"group": "odd", "shape": [4], "shards": 1, "replicas": 1}
        refuse("PUT", "/shards/", 507, "rows_exhausted")
        ask("PUT", "/v1/parameters/odd", parameter, expect=507)
        refuse("PUT", "/nothing", 500, "internal")
        ask("PUT", "/v1/parameters/odd", parameter, expect=201)
        number = 200, {"Content-Type": "application/json"}, b'{"number":1}'
        written = {"name": "odd", "parameters": ["odd"]}
        for status, code in ((409, "already_exists"), (504, "deadline_exceeded"), (422, "digest_mismatch")):
            refusal = problem(status, code)
            guest.answer = lambda method, path, _: number if path.endswith("/numbers") else refusal
            ask("POST", "/v1/checkpoints", written, expect=status)
        # One that is gone altogether would be found lost at a moment that nobody knows.
        guest.answer = lambda *_: hang_up
        ask("POST", "/v1/checkpoints", written, expect=502)
        ask("POST", "/v1/demo", {"group": "odd"}, expect=502)
        ask("PUT", "/v1/parameters/odder", parameter, expect=502)
        worker = {"worker": "guest", "url": guest.url}
        contract.ask(fleet.workers[0], "POST", "/v1/probes", worker, expect=502)
    ask("DELETE", "/v1/workers/guest", expect=204)


def draining(contract, fleet):
    """A coordinator that is told to stop waits for what runs, and says so."""
    c = fleet.coordinator
    enough = threading.Event()
    with Guest("guest") as guest:
        guest.answer = lambda method, path, _: enough.wait(20) and None if "/v1/runs/" in path else None
        contract.ask(c, "POST", "/v1/workers", guest.introduction, expect=201)
        contract.ask(c, "PUT", "/v1/groups/odd", {"workers": ["guest"]}, expect=201)
        contract.ask(c, "POST", "/v1/collectives", {"group": "odd", "op": "barrier"}, expect=202)
        c.process.send_signal(signal.SIGTERM)
        fleet.until(lambda: c.ask("GET", "/readyz").status != 200, "the coordinator stops")
        contract.ask(c, "GET", "/readyz", expect=503)
        contract.ask(c, "PUT", "/v1/groups/late", {"size": 1}, expect=503)
        contract.ask(c, "POST", "/v1/collectives", {"group": "odd", "op": "barrier"}, expect=503)
        enough.set()
