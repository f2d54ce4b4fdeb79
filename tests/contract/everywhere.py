"""What every operation may answer, whatever it is about: refusals of the door, of the session, of a service at its limits."""

import contextlib
import pathlib
import subprocess

from services import Fleet, answer_from

LOOPBACK, ELSEWHERE = "127.0.0.1", "192.0.2.1"  # the second one: see own_network() of contract.py
ALLOCATIONS_MOST = 400
HEADER_LIMIT_BYTES = 8192
CONNECTIONS = 40  # of a service that may open twice as many files, and 64 + some more


def filled(path):
    for name, value in {"{run}": "7", "{shard}": "0", "{array}": "values", "{op}": "barrier"}.items():
        path = path.replace(name, value)
    while "{" in path:
        path = path[: path.index("{")] + "x" + path[path.index("}") + 1 :]
    return path


def operations_of(contract, service):
    for (kind, method, path), operation in contract.document.operations.items():
        if kind == service.kind:
            yield method, filled(path), operation


def request_line(method, path):
    return f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n"


def at_the_door(contract, service):
    """A name that is not the service's, a page of a stranger, headers that are none."""
    for method, path, _ in operations_of(contract, service):
        health = path in ("/healthz", "/livez", "/readyz")
        contract.ask(service, method, path, headers={"Host": "stranger.example"}, expect=None if health else 421)
        contract.ask(service, method, path, headers={"Origin": "https://stranger.example"}, expect=403)
        contract.ask(service, method, path, headers={"Chorus-Message-Crc32c": "00000000-00000001"}, expect=422)
        contract.say(service, method, path, request_line(method, path) + "Host: twice.example\r\n\r\n", expect=400)
        long_field = "X-Long: " + "x" * HEADER_LIMIT_BYTES + "\r\n\r\n"
        contract.say(service, method, path, request_line(method, path) + long_field, expect=431)


def misspelt(contract, service):
    """A query that no operation has, one that is given twice, and a part where all of it is to be put."""
    for method, path, operation in operations_of(contract, service):
        if method == "PUT":
            contract.ask(service, method, path, headers={"Content-Range": "bytes 0-3/8"}, expect=400)
        if operation["x-role"][service.kind] in ("open", "join"):
            continue
        contract.ask(service, method, path + "?unheard-of=1", expect=400)
        known = [p["name"] for p in operation["parameters"] if p["in"] == "query"]
        for name in known:
            contract.ask(service, method, f"{path}?{name}=&{name}=", expect=400)


def too_large(contract, service):
    """Of messages, which may be of any length: told by Content-Length, and never read."""
    for method, path, operation in operations_of(contract, service):
        if "application/json" in operation.get("requestBody", {}).get("content", {}):
            header = request_line(method, path) + "Content-Type: application/json\r\nContent-Length: 99999999999\r\n\r\n"
            contract.say(service, method, path, header)


def too_slow(contract, service):
    """A header that does not end: all of them at the same time, for it takes as long as the service has patience."""
    with contextlib.ExitStack() as connections:
        waiting = []
        for method, path, _ in operations_of(contract, service):
            connection = connections.enter_context(service.connect())
            connection.sendall(request_line(method, path).encode())
            waiting.append((method, path, connection))
        for method, path, connection in waiting:
            contract.judge(service, method, path, answer_from(connection), expect=408)


def at_its_limit(contract, binaries, fleet):
    """More connections than a service takes: what is open to everybody is answered, the rest asked to come again."""
    descriptors = 2 * CONNECTIONS
    with contextlib.ExitStack() as connections:
        for service in alone_services(binaries, fleet, descriptors=descriptors):
            for _ in range(CONNECTIONS):
                connections.enter_context(service.connect())
            for method, path, operation in operations_of(contract, service):
                if operation["x-role"][service.kind] != "open":
                    contract.ask(service, method, path, expect=503)
            for path in ("/healthz", "/livez", "/"):
                contract.ask(service, "GET", path, expect=503 if path == "/" and service.kind == "worker" else 200)


def too_often(contract, binaries, fleet):
    for service in alone_services(binaries, fleet, ["--rate-limit", "1"]):
        for _ in range(3):
            service.ask("GET", "/v1")
        for method, path, operation in operations_of(contract, service):
            renews = path.endswith("/lease")  # never held up: a worker would lose its lease
            if operation["x-role"][service.kind] != "open" and not renews:
                contract.ask(service, method, path, expect=429)


def guessing(contract, binaries, fleet, tokens):
    """Who tries one wrong token after the other is made to wait, wherever it knocks; not on loopback."""
    for service in alone_services(binaries, fleet, ["--host", ELSEWHERE, "--auth-tokens", tokens]):
        wrong = {"Authorization": "Bearer guessed"}
        for _ in range(30):
            service.ask("GET", "/v1", headers=wrong)
        for method, path, _ in operations_of(contract, service):
            contract.ask(service, method, path, headers=wrong, expect=429)


def without_memory(contract, binaries, fleet, failing_allocation):
    """One of the allocations that a handler makes fails: 500, and the next request is answered."""
    library = pathlib.Path(failing_allocation).resolve()
    coordinator = fleet.start("coordinator", f"{binaries}/chorus-coordinator", ["--lease-ms", "60000"], preload=library)
    joined = ["--coordinator", coordinator.url, "--id", "joined"]  # its agent has nothing to do that could lack memory
    worker = fleet.start("worker", f"{binaries}/chorus-worker", joined, preload=library)
    fleet.until(lambda: worker.ask("GET", "/readyz").status == 200, "the worker is ready")
    for service in (coordinator, worker):
        usual = 20  # the session makes some before the handler does
        for method, path, _ in operations_of(contract, service):
            said = {}
            for n in sorted(range(1, ALLOCATIONS_MOST), key=lambda n: abs(n - usual)):
                try:
                    headers = {"Fail-Allocation": str(n), "Accept": "application/json"}
                    answer = service.ask(method, path, headers=headers, patience_s=2)
                except OSError as error:  # nothing was answered: it was the session's own
                    said[n] = type(error).__name__
                    continue
                said[n] = answer.status
                contract.judge(service, method, path, answer)
                if answer.status == 500:
                    usual = n
                    break
            else:
                contract.wrong.append(f"{service.kind}: {method} {path} never lacks memory: {said}")
            if service.process.poll() is not None:
                raise RuntimeError(f"a {service.kind} has ended without memory in {method} {path}: {fleet.said()[-500:]}")
        contract.ask(service, "GET", "/livez", expect=200)


def alone_services(binaries, fleet, flags=(), **limits):
    """A coordinator, and a worker whose coordinator does not exist: they serve, and nobody else asks them."""
    yield fleet.start("coordinator", f"{binaries}/chorus-coordinator", flags, **limits)
    nobody = ["--coordinator", "http://127.0.0.1:1", "--id", "alone"]
    yield fleet.start("worker", f"{binaries}/chorus-worker", [*nobody, *flags], **limits)


def roles(contract, binaries, directory):
    """Without a token and with a token that is not enough: the roles of the document are those of the services."""
    tokens = f"{directory}/tokens.jsonl"

    def create(role):
        command = [f"{binaries}/chorus", "token", "create", "--file", tokens, "--role", role, "--id", role]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[0]

    badge = {role: {"Authorization": "Bearer " + create(role)} for role in ("read", "submit", "join")}
    below = {"submit": "read", "join": "submit", "admin": "join"}
    pathlib.Path(f"{directory}/service.token").write_text(badge["join"]["Authorization"].split()[1] + "\n")
    flags = ["--auth-tokens", tokens, "--token-file", f"{directory}/service.token", "--rate-limit", "100000"]
    with Fleet(binaries, 1, flags, flags) as fleet:
        for service in fleet.services[:2]:
            for method, path, operation in operations_of(contract, service):
                contract.ask(service, method, path, headers={"Authorization": "Bearer unknown"}, expect=401)
                role = operation["x-role"][service.kind]
                if role == "open":
                    if service.ask(method, path).status == 401:
                        contract.wrong.append(f"{service.kind}: {method} {path} is open, and asks for a token")
                    continue
                contract.ask(service, method, path, headers={}, expect=401)
                if role in below:
                    contract.ask(service, method, path, headers=badge[below[role]], expect=403)
    return tokens


def everywhere(contract, binaries, fleet, failing_allocation, directory):
    for service in alone_services(binaries, fleet):
        contract.ask(service, "GET", "/readyz", expect=200 if service.kind == "coordinator" else 503)
        at_the_door(contract, service)
        misspelt(contract, service)
        too_large(contract, service)
        too_slow(contract, service)
    at_its_limit(contract, binaries, fleet)
    too_often(contract, binaries, fleet)
    guessing(contract, binaries, fleet, roles(contract, binaries, directory))
    without_memory(contract, binaries, fleet, failing_allocation)
