"""What coordinator and workers of the previous release said to each other, held against the programs that are built here.

recorded.py BINARIES                  the new coordinator with the old release's journal and a worker that speaks as the old
                                      one did, then the new worker with a coordinator that speaks as the old one did
recorded.py --record BINARIES REV     writes recorded.json anew: BINARIES are those of the revision REV

The one that stands for a worker of the old release refuses every field that this one did not know, as it did. What is drawn by
each process (addresses, incarnations, numbers of runs) is put in where it stands in the recording.
"""

import atexit
import http.client
import http.server
import json
import pathlib
import re
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

RECORDING = pathlib.Path(__file__).with_name("recorded.json")
PATIENCE_S = 60
GROUP = {"size": 1, "on_failure": "shrink"}
COLLECTIVE = {"group": "g", "op": "all_reduce", "tensor": "x", "algorithm": "ring"}
TENSOR = {"Tensor-Dtype": "i32", "Tensor-Shape": "2"}
VALUES = bytes([1, 0, 0, 0, 2, 0, 0, 0])
PARAMETER = {"group": "g", "shape": [4]}
SHARD = "/v1/parameters/w/shards/0"
# An order for a shard with all fields that workers of the old release know: those of the message in d0b80b0, the last
# revision before 0.2.0. Parameters are younger than the recording.
SHARD_ORDER = {
    "parameter": {"name": "w", "dtype": "f32", "shape": [4], "group": "g", "optimizer": {"name": "none"},
                  "initializer": {"name": "zeros"}, "staleness": -1, "reduce": "sum", "replicas": 1,
                  "nonfinite": "accept", "clients": [], "durability": "none", "device": "cpu", "bytes": 16, "epoch": 1,
                  "state": "", "endpoints": []},
    "shard": 0, "begin": 0, "end": 4, "epoch": 1, "role": "owner", "worker": "w0", "incarnation": "", "fresh": True,
    "continues": False, "recover": False, "backups": [],
}  # fmt: skip
KEPT_FIELDS = ("Content-Type", "Tensor-Dtype", "Tensor-Shape", "Tensor-Version", "ETag")


def fail(text):
    sys.exit(f"upgrade: {text}")


def ask(url, method, path, body=None, headers=None):
    connection = http.client.HTTPConnection(urllib.parse.urlsplit(url).netloc, timeout=PATIENCE_S)
    try:
        content = json.dumps(body).encode() if isinstance(body, dict) else body
        if content is None and method in ("PUT", "POST"):
            content = b""
        connection.request(method, path, body=content, headers=headers or {})
        response = connection.getresponse()
        return response.status, dict(response.headers), response.read()
    finally:
        connection.close()


def until(what, condition):
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        if found := condition():
            return found
    fail(f"not within {PATIENCE_S} s: {what}")


class Program:
    def __init__(self, program, *arguments):
        command = [program, "--port", "0", "--log-level", "warn", *arguments]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        atexit.register(self.process.kill)
        line = self.process.stdout.readline()
        if not line.startswith("listening on "):
            fail(f"{program} did not start")
        self.url = line.removeprefix("listening on ").strip()

    def stop(self):
        self.process.terminate()
        if self.process.wait(PATIENCE_S) != 0:
            fail(f"{self.process.args[0]} ended with status {self.process.returncode}")


class Server:
    """Answers with what `answer(method, target, headers, body)` returns: status, headers, body. On threads of its own."""

    def __init__(self, answer):
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def serve(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                status, headers, content = answer(self.command, self.path, dict(self.headers), body)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                if status != 204:
                    self.send_header("Content-Length", headers.get("X-Length", str(len(content))))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(content)

            do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = serve

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


def shape(method, target):
    """Of a request, without what is drawn: "PUT /v1/runs/N"."""
    path = urllib.parse.urlsplit(target).path
    return method + " " + re.sub(r"^/v1/runs/\d+", "/v1/runs/N", path)


# ---- recording


def record(binaries, revision):
    said, known = [], set()
    lock = threading.Lock()
    urls = {}

    def pass_on(to):
        def answer(method, target, headers, body):
            if to == "coordinator" and shape(method, target) == "POST /v1/workers":
                join = json.loads(body)
                urls["worker"], join["url"] = join["url"], at_worker.url
                body = json.dumps(join).encode()
            kept = {name: value for name, value in headers.items() if name == "Content-Type" or name.startswith("Chorus-")}
            status, answered, content = ask(urls[to], method, target, body, kept)
            fields = {name: answered[name] for name in KEPT_FIELDS if name in answered}
            if method == "HEAD":
                fields["X-Length"] = answered["Content-Length"]
            asked = {"to": to, "method": method, "target": target, "body": body.decode()}
            key = (to, shape(method, target), status)
            with lock:
                if key not in known:
                    known.add(key)
                    said.append({**asked, "status": status, "fields": fields, "answer": content.decode()})
            return status, fields, content

        return answer

    at_coordinator, at_worker = Server(pass_on("coordinator")), Server(pass_on("worker"))
    with tempfile.TemporaryDirectory() as directory:
        journal = f"{directory}/journal"
        coordinator = Program(f"{binaries}/chorus-coordinator", "--journal", journal)
        urls["coordinator"] = coordinator.url
        worker = Program(f"{binaries}/chorus-worker", "--coordinator", at_coordinator.url, "--id", "w0", "--locality", "host=old")
        until("the worker is ready", lambda: ask(worker.url, "GET", "/readyz")[0] == 200)
        ask(worker.url, "PUT", "/v1/tensors/x", VALUES, TENSOR)
        ask(coordinator.url, "PUT", "/v1/groups/g", GROUP)
        status, _, content = ask(coordinator.url, "PUT", "/v1/collectives/recorded?wait=30s", COLLECTIVE)
        if json.loads(content).get("state") != "succeeded":
            fail(f"the old release does not do its collective: {status} {content}")
        until("a lease is renewed", lambda: any(shape(e["method"], e["target"]) == "PUT /v1/workers/w0/lease" for e in said))
        worker.stop()
        coordinator.stop()
        database = sqlite3.connect(journal)
        pragmas = {name: database.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")}
        dump = list(database.iterdump())
    version = subprocess.run([f"{binaries}/chorus", "version"], capture_output=True, text=True, check=True).stdout.strip()
    RECORDING.write_text(
        json.dumps({"revision": revision, "version": version, "pragmas": pragmas, "journal": dump, "said": said}, indent=1) + "\n"
    )
    print(f"recorded: {len(said)} requests and a journal of schema {pragmas['user_version']}, of {version}")


# ---- replay


def fields_of(value, place=""):
    """Paths of all members: /group/members/*/rank."""
    if isinstance(value, dict):
        for name, member in value.items():
            yield f"{place}/{name}"
            yield from fields_of(member, f"{place}/{name}")
    elif isinstance(value, list):
        for element in value:
            yield from fields_of(element, f"{place}/*")


def strings(text):
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return None


class Recording:
    def __init__(self):
        everything = json.loads(RECORDING.read_text())
        self.revision, self.pragmas = everything["revision"], everything["pragmas"]
        self.journal, self.said = everything["journal"], everything["said"]
        self.join = json.loads(self.one("coordinator", "POST /v1/workers")["body"])

    def one(self, to, wanted):
        return next((e for e in self.said if e["to"] == to and shape(e["method"], e["target"]) == wanted), None)

    def make_journal(self, path):
        database = sqlite3.connect(path)
        database.executescript("\n".join(self.journal))
        for name, value in self.pragmas.items():
            database.execute(f"PRAGMA {name}={value}")
        database.commit()
        database.execute("PRAGMA journal_mode=WAL")
        database.close()


def compare(what, wanted, status, content):
    """An answer to the old release has what that one was given: it reads no less."""
    if status != wanted["status"]:
        fail(f"{what} is answered {status}, and was {wanted['status']}: {content[:300]}")
    old, new = strings(wanted["answer"]), strings(content)
    if isinstance(old, dict):
        lost = set(old) - set(new or {})
        if lost:
            fail(f"{what}: the answer lacks {sorted(lost)}")


def old_worker(recording, problems, asked):
    """Stands for the worker of the old release."""
    # What it read with all its fields, and members that it knew but was not told of in the recording.
    optional = {"/result", "/group/selection/*/max_bytes", "/group/requested/workers"}

    def answer(method, target, _, body):
        wanted = recording.one("worker", shape(method, target))
        asked.append(shape(method, target))
        if shape(method, target) == f"PUT {SHARD}":
            strange = sorted(set(fields_of(strings(body))) - set(fields_of(SHARD_ORDER)))
            if strange:
                problems.append(f"an order for a shard has {strange}, which the old release refuses")
            return 204, {}, b""
        if wanted is None:
            return 404, {"Content-Type": "application/problem+json"}, b'{"code":"not_found","status":404,"title":"Not found"}'
        message = strings(body)
        if isinstance(message, dict):
            known = set(fields_of(json.loads(wanted["body"]))) | optional
            strange = sorted({field for field in fields_of(message)} - known)
            if strange:
                problems.append(f"{method} {target} has {strange}, which the old release refuses")
                problem = {"code": "invalid_field", "status": 422, "title": "A field is not valid"}
                problem["detail"] = f"{strange[0]}: unknown field"
                return 422, {"Content-Type": "application/problem+json"}, json.dumps(problem).encode()
        content = wanted["answer"]
        if "/runs/" in target and content:
            answered = json.loads(content)
            if "run" in answered:
                answered["run"] = message["run"]
            content = json.dumps(answered)
        return wanted["status"], wanted["fields"], content.encode()

    return Server(answer)


def new_coordinator(binaries, recording):
    problems, asked = [], []
    worker = old_worker(recording, problems, asked)
    with tempfile.TemporaryDirectory() as directory:
        recording.make_journal(f"{directory}/journal")
        coordinator = Program(f"{binaries}/chorus-coordinator", "--journal", f"{directory}/journal", "--lease-ms", "60000")
        kept = json.loads(ask(coordinator.url, "GET", "/v1/collectives/recorded")[2])
        if kept.get("state") != "succeeded" or kept["ranks"][0]["worker"] != "w0":
            fail(f"of the old release's journal is left {kept}")
        join = {**recording.join, "url": worker.url}
        status, _, content = ask(coordinator.url, "POST", "/v1/workers", join)
        if status // 100 != 2:
            fail(f"a worker of the old release may not join: {content}")
        compare("its join", {**recording.one("coordinator", "POST /v1/workers"), "status": status}, status, content)
        lease = recording.one("coordinator", "PUT /v1/workers/w0/lease")
        compare("its lease", lease, *(ask(coordinator.url, "PUT", lease["target"], lease["body"].encode())[i] for i in (0, 2)))

        def is_ready():
            group = json.loads(ask(coordinator.url, "GET", "/v1/groups/g")[2])
            return problems or (group["state"] == "ready" and group["members"][0]["url"] == worker.url)

        until("the group takes it in", is_ready)
        status, _, content = ask(coordinator.url, "PUT", "/v1/collectives/replayed?wait=30s", COLLECTIVE)
        if problems or json.loads(content).get("state") != "succeeded":
            fail("; ".join(problems) or f"a collective with it: {status} {content.decode()}")
        status, _, content = ask(coordinator.url, "PUT", "/v1/parameters/w", PARAMETER)
        if problems or status != 201:
            fail("; ".join(problems) or f"a parameter on it: {status} {content.decode()}")
        for order in ("PUT /v1/groups/g", "PUT /v1/runs/N", "POST /v1/runs/N/commit", f"PUT {SHARD}"):
            if order not in asked:
                fail(f"the coordinator did not say {order}: {asked}")
        coordinator.stop()
    print(f"right: a new coordinator on the journal of {recording.revision}, with a worker of it ({len(asked)} requests)")


def new_worker(binaries, recording):
    asked = []

    def answer(method, target, _, body):
        asked.append(shape(method, target))
        wanted = recording.one("coordinator", shape(method, target))
        if wanted is None:
            return 405 if target.split("?")[0].endswith("/lease") else 404, {"Content-Type": "application/problem+json"}, b"{}"
        content = wanted["answer"]
        if shape(method, target) == "POST /v1/workers":
            joined.update(json.loads(body))
            content = json.dumps({**json.loads(content), **{name: joined[name] for name in ("id", "incarnation", "url")}})
        return wanted["status"], wanted["fields"], content.encode()

    joined = {}
    coordinator = Server(answer)
    worker = Program(f"{binaries}/chorus-worker", "--coordinator", coordinator.url, "--id", "w0", "--locality", "host=old")
    until("the worker is ready", lambda: ask(worker.url, "GET", "/readyz")[0] == 200)
    ask(worker.url, "PUT", "/v1/tensors/x", VALUES, TENSOR)
    was_at = json.loads(recording.one("worker", "PUT /v1/groups/g")["body"])["group"]["members"][0]["url"]
    for order in recording.said:
        if order["to"] != "worker":
            continue
        body = order["body"].replace(recording.join["incarnation"], joined["incarnation"]).replace(was_at, joined["url"])
        status, _, content = ask(worker.url, order["method"], order["target"], body.encode())
        compare(f"{order['method']} {order['target']}", order, status, content)
    if ask(worker.url, "GET", "/v1/tensors/x")[1].get("Tensor-Version") != "2":
        fail("the collective of the old coordinator has left no result")
    status, _, content = ask(worker.url, "PUT", SHARD, {**SHARD_ORDER, "incarnation": joined["incarnation"]})
    if status != 204:
        fail(f"a shard of the old coordinator is refused: {status} {content.decode()}")
    if ask(worker.url, "GET", "/v1/parameters/w/value?shard=0")[2] != bytes(16):
        fail("a shard of the old coordinator does not have its initial values")
    worker.stop()
    if "DELETE /v1/workers/w0" not in asked:
        fail(f"the worker does not leave as the old coordinator knows it: {asked}")
    print(f"right: a new worker, with a coordinator of {recording.revision} ({len(asked)} requests)")


if __name__ == "__main__":
    if sys.argv[1] == "--record":
        record(*sys.argv[2:])
    else:
        recording = Recording()
        new_coordinator(sys.argv[1], recording)
        new_worker(sys.argv[1], recording)
        print("upgrade: all passed, by what was recorded")
