"""Services that answer as they are told, and proxies that lose answers."""

from __future__ import annotations

import http.client
import http.server
import json
import socket
import struct
import threading
import urllib.parse
from collections.abc import Callable
from typing import Any

Answer = tuple[int, dict[str, str], bytes]


class StandIn:
    """A server on loopback. `answer(method, path, headers, body)` says what it answers; None: nothing, and a reset.

    Attributes
    ----------
    asked : list
        (method, path, headers, body) of every request, in order.
    connections : set of int
        The clients' ports.
    """

    def __init__(self, answer: Callable[[str, str, Any, bytes], Answer | None]) -> None:
        stand_in, self.asked, self.connections = self, list[tuple[str, str, Any, bytes]](), set[int]()

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_one_request(self) -> None:
                self.raw_requestline = self.rfile.readline(65537)
                if not self.raw_requestline or not self.parse_request():
                    self.close_connection = True
                    return
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                stand_in.connections.add(self.client_address[1])
                stand_in.asked.append((self.command, self.path, self.headers, body))
                answered = answer(self.command, self.path, self.headers, body)
                if answered is None:
                    self.close_connection = True
                    linger = struct.pack("ii", 1, 0)
                    self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                    return
                status, fields, content = answered
                self.send_response(status)
                for name, value in {**fields, "Content-Length": str(len(content))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def __enter__(self) -> StandIn:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class HeldPort:
    """A reserved free port on loopback, where nobody listens before a service is told to.

    The system gives it to no process; one that binds it by number with SO_REUSEADDR, as servers do, gets it. A port
    that was closed a moment ago may be a service of another test now.
    """

    def __init__(self) -> None:
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind(("127.0.0.1", 0))
        self.number: int = self._socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.number}"

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> HeldPort:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def message(status: int, body: Any, **fields: str) -> Answer:
    media = "application/problem+json" if status >= 400 else "application/json"
    named = {name.replace("_", "-"): value for name, value in fields.items()}
    return status, {"Content-Type": media, **named}, json.dumps(body).encode()


def problem(status: int, code: str, **fields: str) -> Answer:
    return message(status, {"status": status, "code": code, "title": code, "detail": "it"}, **fields)


def proxy_error(status: int) -> Answer:
    """What a proxy answers whose service is away."""
    return status, {"Content-Type": "text/html"}, f"<html><h1>{status}</h1></html>".encode()


def losing(url: str, method: str, prefix: str, count: int = 1) -> StandIn:
    """A proxy of the service at `url` that passes everything on, and loses the first `count` answers to requests."""
    left = [count]

    def answer(asked: str, path: str, headers: Any, body: bytes) -> Answer | None:
        connection = http.client.HTTPConnection(urllib.parse.urlsplit(url).netloc)
        connection.request(asked, path, body or None, {**headers, "Host": urllib.parse.urlsplit(url).netloc})
        response = connection.getresponse()
        content = response.read()
        connection.close()
        if asked == method and path.startswith(prefix) and left[0] > 0:
            left[0] -= 1
            return None
        kept = {
            n: v
            for n, v in response.headers.items()
            if n not in ("Content-Length", "Transfer-Encoding", "Date", "Server")
        }
        return response.status, kept, content

    return StandIn(answer)
