"""A worker that is none: it answers as it is told, so that a coordinator meets what real workers do only when they break."""

import contextlib
import http.server
import socket
import threading


hang_up = "the connection ends without an answer"


class Guest:
    """`answer` of a request gives (status, header fields, body), or hang_up; without one, everything is well. Ends with its
    context."""

    def __init__(self, name, incarnation="0123456789abcdef"):
        self.name, self.incarnation = name, incarnation
        self.answer = lambda method, path, body: None
        self.connections = []
        guest = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self):
                super().setup()
                guest.connections.append(self.connection)

            def handle_one_request(self):
                try:
                    super().handle_one_request()
                except OSError:  # whoever asked has gone
                    self.close_connection = True

            def any(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                otherwise = (200, {}, b"{}") if self.command in ("GET", "HEAD", "POST") else (204, {}, b"")
                answer = guest.answer(self.command, self.path, body) or otherwise
                if answer == hang_up:
                    self.close_connection = True
                    return
                status, fields, content = answer
                self.send_response(status)
                for field, value in {"Content-Length": str(len(content)), **fields}.items():
                    if status != 204 or field != "Content-Length":
                        self.send_header(field, value)
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(content)

            do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = any

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05})

    @property
    def introduction(self):
        return {"id": self.name, "incarnation": self.incarnation, "url": self.url, "version": "guest"}

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        if self.thread.is_alive():
            self.server.shutdown()
            self.thread.join()
        self.server.server_close()
        for connection in self.connections:
            with contextlib.suppress(OSError):  # it has ended already
                connection.shutdown(socket.SHUT_RDWR)


def problem(status, code):
    """As a worker says it."""
    body = f'{{"type":"/problems/{code}","title":"t","status":{status},"detail":"so it is","code":"{code}","retryable":false}}'
    return status, {"Content-Type": "application/problem+json"}, body.encode()
