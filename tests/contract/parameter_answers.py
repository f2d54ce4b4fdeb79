"""What workers answer about parameters: shards, pushes and pulls, checkpoints."""

import struct

from worker_answers import FLOATS, OCTETS, identity

CHUNKED = "HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n"


def said_in_chunks(contract, worker, method, path, headers, expect=411):
    """An empty body without a length."""
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    contract.say(worker, method, path, f"{method} {path} {CHUNKED}{lines}\r\n0\r\n\r\n", expect=expect)


def shards(contract, worker, parameter):
    ask = lambda *arguments, **named: contract.ask(worker, *arguments, **named)
    me = identity(worker)
    shard = "/v1/parameters/mirror/shards/0"
    order = {
        "parameter": {**parameter, "name": "mirror", "endpoints": []}, "shard": 0, "begin": 0, "end": 4, "epoch": 1,
        "role": "backup", "worker": me["worker"], "incarnation": me["incarnation"],
    }  # fmt: skip
    ask("PUT", shard, order, expect=204)
    ask("PUT", shard, {**order, "incarnation": "0000000000000001"}, expect=409)
    outcomes = ask("POST", "/v1/shards", {"items": [order, {**order, "incarnation": "0" * 16}]}, expect=200).json()
    if [(outcome.get("error") or {}).get("code") for outcome in outcomes["items"]] != [None, "epoch_fenced"]:
        contract.wrong.append(f"POST /v1/shards: {outcomes}")
    ask("POST", "/v1/shards", {"items": [{}]}, expect=422)
    ask("PUT", "/v1/parameters/mirror/shards/x", order, expect=400)
    ask("PUT", "/v1/parameters/mirror/shards/1", order, expect=422)
    made = {**order, "role": "owner", "fresh": True}
    elsewhere = {**made, "parameter": {**made["parameter"], "name": "other"}}
    ask("PUT", "/v1/parameters/other/shards/0", {**elsewhere, "checkpoint": {"name": "nothing"}}, expect=404)
    logged = {**made, "parameter": {**made["parameter"], "durability": "log", "name": "other"}}
    ask("PUT", "/v1/parameters/other/shards/0", logged, expect=501)
    few = {**parameter, "name": "lazy", "endpoints": [], "shape": [1 << 40, 2], "lazy_rows": 1}
    few = {**made, "parameter": few, "begin": 0, "end": 1 << 40, "checkpoint": {"name": "rows"}}
    ask("PUT", "/v1/parameters/lazy/shards/7", {**few, "shard": 7}, expect=507)
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
    push["Chorus-Position"] = "6"
    ask("POST", shard + "/log", FLOATS, {**push, "Chorus-Position": "99"}, expect=409)
    ask("POST", shard + "/log", FLOATS[:8], push, expect=422)
    ask("POST", shard + "/log", FLOATS, {**push, "Content-Type": "text/html"}, expect=415)
    ask("POST", shard + "/log", FLOATS, {**push, "Chorus-Kind": "value", "Chorus-Compression": "f16"}, expect=501)
    ask("POST", shard + "/log", b"x" * (2 << 20), {**push, "Chorus-Kind": "clients"}, expect=413)
    ask("PUT", shard + "/arrays/values?image=1&offset=0&bytes=99", FLOATS, epoch, expect=409)
    ask("POST", shard + "/state?image=1", {"version": "x"}, epoch, expect=422)
    endless = f"POST {shard}/state HTTP/1.1\r\nHost: 127.0.0.1\r\nChorus-Epoch: 1\r\nContent-Length: 99999999999\r\n\r\n"
    contract.say(worker, "POST", shard + "/state", endless, expect=413)
    said_in_chunks(contract, worker, "POST", shard + "/log", {**push, "Chorus-Compression": "f16"})
    said_in_chunks(contract, worker, "PUT", shard + "/arrays/values", epoch)
    nothing = "/v1/parameters/nothing/shards/0"
    ask("PUT", nothing + "/arrays/values", FLOATS, epoch, expect=404)
    for rest in ("/log", "/state", "/complete"):
        ask("POST", nothing + rest, headers=push, expect=404)
        ask("POST", "/v1/parameters/mirror/shards/7" + rest, headers=push, expect=421)
    ask("DELETE", nothing, expect=404)
    ask("DELETE", shard + "?epoch=0", expect=409)
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
    ask("GET", w + "/value", headers={"If-Match": '"99.9"'}, expect=412)
    some_rows = {**OCTETS, "Chorus-Rows": "2"}
    pushes = [("PUT", "/value", FLOATS, {}), ("POST", "/gradient", FLOATS, {}), ("POST", "/push_pull", FLOATS, {}),
              ("POST", "/rows/gradient", numbers + FLOATS, some_rows)]
    for method, rest, body, headers in pushes:
        here = rows if "rows" in rest else w
        ask(method, "/v1/parameters/nothing" + rest, body, push(9, **headers), expect=404)
        ask(method, here + rest, body, push(9, **headers, **{"Tensor-Dtype": "i32"}), expect=409)
        ask(method, here + rest, body, {**push(9, **headers), "Content-Type": "text/html"}, expect=415)
        ask(method, here + rest, body[:4], push(9, **headers), expect=422)
        ask(method, here + rest + "?timeout_ms=50", body, push(99, **headers), expect=504)
        compressed = push(9, **headers, **{"Chorus-Compression": "f16"})
        ask(method, (here if method == "PUT" or headers else lazy) + rest, body, compressed, expect=501)
        said_in_chunks(contract, worker, method, here + rest, push(9, **headers), expect=422)
    said_in_chunks(contract, worker, "PUT", w + "/value?offset=0&of=16", push(9))
    said_in_chunks(contract, worker, "POST", w + "/gradient?offset=0&of=16", push(9))
    said_in_chunks(contract, worker, "POST", w + "/push_pull", push(9, **{"Chorus-Compression": "f16"}))
    ask("POST", "/v1/parameters/nothing/rows", numbers, some_rows, expect=404)
    ask("POST", rows + "/rows", numbers, {**some_rows, "Content-Type": "text/html"}, expect=415)
    ask("POST", rows + "/rows?min_version=99&timeout_ms=50", numbers, some_rows, expect=504)
    said_in_chunks(contract, worker, "POST", rows + "/rows", some_rows)
    ask("GET", "/v1/parameters/nothing/value", expect=404)


def of_several_shards(contract, fleet):
    """Pieces are for the owner of a shard; and a worker that knew the parameter before serves its successor."""
    c, w0 = fleet.coordinator, fleet.workers[0]
    ask = lambda *arguments, **named: contract.ask(w0, *arguments, **named)
    parameter = {"group": "g", "shape": [3, 2], "shards": 2, "replicas": 1}
    made = contract.ask(c, "PUT", "/v1/parameters/cut", parameter, expect=201).json()
    first = next(one for one in made["endpoints"] if one["worker"] == "w0")
    shard, bytes_of = first["shard"], 4 * (first["elements"][1] - first["elements"][0])
    push = {**OCTETS, "Chorus-Client": "p", "Chorus-Sequence": "0"}
    for method, rest in (("PUT", "/value"), ("POST", "/gradient")):
        piece = f"/v1/parameters/cut{rest}?shard={shard}&of={bytes_of}&offset="
        ask(method, piece + "0", FLOATS[:4], push, expect=202)
        ask(method, piece + "4", bytes(bytes_of - 4), push, expect=200)
        push["Chorus-Sequence"] = str(int(push["Chorus-Sequence"]) + 1)
    piece = f"/v1/parameters/cut/rows/gradient?shard={shard}&of=16&offset="
    ask("POST", piece + "0", struct.pack("<Q", first["elements"][0] // 2), {**push, "Chorus-Rows": "1"}, expect=202)
    said_in_chunks(contract, w0, "POST", piece + "8", {**push, "Chorus-Rows": "1"})
    ask("POST", piece + "8", FLOATS[:8], {**push, "Chorus-Rows": "1"}, expect=200)
    ask("GET", "/v1/parameters/cut/value", expect=200)
    contract.ask(c, "PUT", "/v1/parameters/empty", {**parameter, "shape": [4, 0]}, expect=201)
    ask("POST", "/v1/parameters/empty/rows", bytes(8), {**OCTETS, "Chorus-Rows": "1"}, expect=501)
    contract.ask(c, "DELETE", "/v1/parameters/cut", expect=204)
    contract.ask(c, "PUT", "/v1/parameters/cut", {**parameter, "shape": [2, 2]}, expect=201)
    ask("GET", "/v1/parameters/cut/value", expect=200)


def checkpoints(contract, fleet):
    owner = fleet.coordinator.ask("GET", "/v1/parameters/w").json()["endpoints"][0]["worker"]
    worker = fleet.workers[int(owner[1:])]
    ask = lambda *arguments, **named: contract.ask(worker, *arguments, **named)
    ask("GET", "/v1/checkpoints/nothing", expect=404)
    number = ask("POST", "/v1/checkpoints/weekly/numbers", expect=200).json()["number"]
    ask("POST", "/v1/checkpoints/.../numbers")
    places = {"number": number, "timeout_ms": 1000, "items": [{"parameter": "w", "shard": 0, "clients": []}]}
    held = ask("POST", "/v1/checkpoints/weekly/holds", places, expect=200).json()
    ask("POST", "/v1/checkpoints/weekly/images", {**held, "number": number}, expect=200)
    ask("POST", "/v1/checkpoints/weekly/images", places, expect=409)
    for stage in ("holds", "images"):
        ask("POST", f"/v1/checkpoints/weekly/{stage}", {**places, "items": [{"parameter": "nothing", "shard": 0}]}, expect=404)
        ask("POST", f"/v1/checkpoints/weekly/{stage}", {"number": "x"}, expect=422)
    file = {"number": number, "shards": [{"parameter": "w", "shard": 0}]}
    part = ask("POST", "/v1/checkpoints/weekly/files", file, expect=200).json()["manifest"]
    ask("POST", "/v1/checkpoints/weekly/files", {**file, "shards": [{"parameter": "nothing", "shard": 0}]})
    ask("POST", "/v1/checkpoints/weekly/files", {"number": "x"}, expect=422)
    ask("POST", "/v1/checkpoints/weekly/commit", {"number": number, "parts": [part]}, expect=204)
    ask("POST", "/v1/checkpoints/weekly/commit", {"number": number, "parts": [part]}, expect=409)
    ask("POST", "/v1/checkpoints/weekly/files", file, expect=409)
    ask("DELETE", f"/v1/checkpoints/weekly/files/{number + 1}", expect=204)
    ask("DELETE", "/v1/checkpoints/weekly/files/x", expect=400)
    ask("POST", "/v1/checkpoints/weekly/commit", {"number": number, "parts": ["{}"]})
    ask("POST", "/v1/checkpoints/weekly/commit", {"number": number + 1, "parts": [part]})
    ask("GET", "/v1/checkpoints/weekly", expect=200)
    contract.ask(fleet.coordinator, "POST", "/v1/checkpoints", {"name": "rows", "parameters": ["lazy"]}, expect=201)


def without_directories(contract, fleet):
    """A worker that has nowhere to write."""
    worker = fleet.workers[0]
    ask = lambda *arguments, **named: contract.ask(worker, *arguments, **named)
    ask("GET", "/v1/checkpoints/weekly", expect=501)
    ask("POST", "/v1/checkpoints/weekly/numbers", expect=501)
    ask("POST", "/v1/checkpoints/weekly/files", {"number": 1, "shards": []}, expect=501)
    ask("POST", "/v1/checkpoints/weekly/commit", {"number": 1, "parts": []}, expect=501)
    ask("DELETE", "/v1/checkpoints/weekly/files/1", expect=501)
    parameter = {"group": "g", "shape": [4], "shards": 1, "replicas": 1}
    contract.ask(fleet.coordinator, "PUT", "/v1/groups/g", {"size": 1}, expect=201)
    contract.ask(fleet.coordinator, "PUT", "/v1/parameters/w", parameter, expect=201)
    contract.ask(fleet.coordinator, "POST", "/v1/checkpoints", {"name": "nightly"}, expect=501)
