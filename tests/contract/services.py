"""Coordinator and workers as real processes on loopback, and one way to ask them."""

import http.client
import json
import os
import pathlib
import resource
import socket
import subprocess
import tempfile
import time
import urllib.parse

PATIENCE_S = 20
LEASE_MS = "60000"  # a machine that is busy with other work loses nobody


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def media(self):
        return (self.headers.get("Content-Type") or "").split(";")[0].strip()

    def json(self):
        return json.loads(self.body)


class Service:
    """One process; ends with the fleet that made it."""

    def __init__(self, kind, program, arguments, log, preload=None, descriptors=None):
        """preload: a library; descriptors: how many files and sockets it may have."""
        self.kind = kind
        limit = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))
        self.process = subprocess.Popen(
            [program, "--port", "0", "--log-level", "warn", *arguments], stdout=subprocess.PIPE, stderr=log, text=True,
            env={**os.environ, **({"LD_PRELOAD": str(preload)} if preload else {})},
            preexec_fn=limit if descriptors else None,
        )  # fmt: skip
        line = self.process.stdout.readline()
        if not line.startswith("listening on "):
            log.flush()
            raise RuntimeError(f"{program} did not start: {pathlib.Path(log.name).read_text()[-500:]}")
        self.url = line.removeprefix("listening on ").strip()

    def ask(self, method, path, body=None, headers=None, stream_bytes=None, patience_s=60):
        """stream_bytes: read so much of a body that has no end."""
        connection = http.client.HTTPConnection(urllib.parse.urlsplit(self.url).netloc, timeout=patience_s)
        try:
            if isinstance(body, (dict, list)):
                body = json.dumps(body)
            if body is None and method in ("PUT", "POST"):
                body = b""
            connection.request(method, path, body=body, headers=headers or {})
            response = connection.getresponse()
            content = response.read(stream_bytes) if stream_bytes else b"" if response.status == 101 else response.read()
            return Answer(response.status, response.headers, content)
        finally:
            connection.close()


    def connect(self):
        place = urllib.parse.urlsplit(self.url)
        return socket.create_connection((place.hostname, place.port), timeout=60)

    def say(self, header, rest=b""):
        """Bytes as they are, as a client that is not a library might send them; gives the answer to them."""
        with self.connect() as connection:
            connection.sendall(header.encode() + rest)
            return answer_from(connection)


def answer_from(connection):
    response = http.client.HTTPResponse(connection)
    response.begin()
    return Answer(response.status, response.headers, response.read())


class Fleet:
    """A coordinator, and workers w0, w1, ... that are ready."""

    def __init__(self, binaries, workers, flags=(), worker_flags=(), token=None):
        self.directory = tempfile.TemporaryDirectory(prefix="chorus-contract-")
        self.path = pathlib.Path(self.directory.name)
        self.log = open(self.path / "log", "w+")
        self.services = []
        coordinator_program, worker_program = f"{binaries}/chorus-coordinator", f"{binaries}/chorus-worker"
        self.coordinator = self.start("coordinator", coordinator_program, ["--lease-ms", LEASE_MS, *flags])
        self.workers = [
            self.start("worker", worker_program, ["--coordinator", self.coordinator.url, "--id", f"w{i}", *worker_flags])
            for i in range(workers)
        ]
        for worker in self.workers:
            self.until(lambda worker=worker: worker.ask("GET", "/readyz").status == 200, "the workers are ready")

    def start(self, kind, program, arguments, **limits):
        service = Service(kind, program, list(arguments), self.log, **limits)
        self.services.append(service)
        return service

    @staticmethod
    def until(condition, what):
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            if time.monotonic() > deadline:
                raise RuntimeError(f"waited in vain until {what}")
            os.sched_yield()

    def said(self):
        """What the services have logged."""
        self.log.flush()
        return (self.path / "log").read_text()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for service in reversed(self.services):
            service.process.terminate()
        for service in reversed(self.services):
            try:
                service.process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                service.process.kill()
                service.process.wait()
            service.process.stdout.close()
        self.log.close()
        self.directory.cleanup()
