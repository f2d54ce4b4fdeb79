"""The small programs of tests/bench/peers compile, and those that need nobody else run: for a moment each, and what they
print is looked at for what the tables read, not for how fast it was."""
import http.server
import os
import tempfile
import threading
import unittest
import unittest.mock
from pathlib import Path

from .processes import need_json
from .programs import RECIPES, Programs, what_is_missing

MOMENT, TIMEOUT, SKIPPED = 0.01, 60, 77
NEEDED = "gcc"


class Keeper(http.server.BaseHTTPRequestHandler):
    """Gives back what it was given."""
    protocol_version = "HTTP/1.1"
    kept = b""

    def answer(self, body):
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_PUT(self):
        type(self).kept = self.rfile.read(int(self.headers["Content-Length"]))
        self.answer(b"")

    def do_GET(self):
        self.answer(self.kept)

    def log_message(self, *_):
        """Nothing."""


class SmallPrograms(unittest.TestCase):
    programs = None

    def lines(self, name, *arguments):
        return need_json([self.programs.path(name), *arguments], TIMEOUT)

    def times_us(self, line, count):
        self.assertEqual(len(line["times_us"]), count)
        self.assertGreater(min(line["times_us"]), 0)

    def test_how_fast_the_cores_are(self):
        look, = self.lines("core_speed")
        self.assertGreater(min(look["turns_per_ns"]), 0)
        if len(look["turns_per_ns"]) == 1:
            self.assertIsNone(look["line_ns"])
        else:
            self.assertGreater(look["line_ns"], 0)

    def test_how_fast_memory_is(self):
        lines = self.lines("memory_bandwidth", "--bytes", 65536, "--seconds", MOMENT, "--threads", 2)
        self.assertEqual([(line["what"], line["threads"]) for line in lines],
                         [("copy", 1), ("copy", 2), ("add", 1), ("add", 2)])
        self.assertGreater(min(line["GBps"] for line in lines), 0)

    def test_a_bare_all_reduce_also_of_more_ranks_than_processes(self):
        for ranks, processes in ((2, 2), (3, 2)):
            lines = self.lines("bare_all_reduce", "--ranks", ranks, "--processes", processes, "--bytes", "65536,1048576",
                               "--seconds", MOMENT, "--bind", "auto")
            self.assertEqual([(line["bytes"], line["stores"]) for line in lines],
                             [(size, stores) for size in (65536, 1048576) for stores in ("cached", "streaming", "own", "none")])
            self.assertTrue(all(line["us"] > 0 and line["ranks"] == ranks for line in lines))

    def test_what_two_bare_processes_tell_each_other(self):
        lines = self.lines("bare_pair", "--seconds", MOMENT)
        self.assertEqual([line["what"] for line in lines], ["all_reduce", "exchange", "exchange"])
        self.assertGreater(min(line["us"] for line in lines), 0)

    def test_many_small_tensors_between_bare_processes(self):
        lines = self.lines("bare_fused", "--seconds", MOMENT)
        self.assertEqual([line["how"] for line in lines], ["one by one"] + 4 * ["all at once"])
        self.assertGreater(min(line["us"] for line in lines), 0)

    def test_the_messages_of_a_launch(self):
        line, = self.lines("bare_launch", "--count", 5)
        self.times_us(line, 5)

    def test_a_raw_socket_both_ways(self):
        lines = self.lines("raw_socket", "--bytes", 1 << 20, "--count", 3)
        self.assertEqual([(line["method"], line["correct"]) for line in lines], [("GET", True), ("PUT", True)])
        for line in lines:
            self.times_us(line, 3)

    def test_a_client_that_gets_back_what_it_put_and_sees_what_it_did_not(self):
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Keeper) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            def ask(method, turn):
                line, = self.lines("http_client", "--port", server.server_port, "--method", method, "--path", "/x", "--bytes",
                                   100000, "--count", 3, "--turn", turn, "--headers", "A: b\\nC: d")
                self.times_us(line, 3)
                return line["correct"]
            self.assertTrue(ask("PUT", 1))
            self.assertTrue(ask("GET", 1))
            self.assertFalse(ask("GET", 2))
            server.shutdown()

    def test_a_client_of_parameters_and_bare_servers(self):
        if missing := what_is_missing("g++"):
            self.skipTest(missing)
        for kind in ("raw", "added_after", "added_while"):
            line, = self.lines("parameter_traffic", kind, 0, "push", 65536, 1, MOMENT, 0)
            self.assertGreater(line["requests"], 0)

    def test_those_of_the_peers_compile_where_their_compilers_are(self):
        for name, (compiler, *_) in RECIPES.items():
            if compiler == NEEDED or not compiler.startswith("mpicc"):
                continue
            with self.subTest(name):
                if missing := what_is_missing(compiler):
                    self.skipTest(missing)
                self.assertTrue(self.programs.path(name).exists())

    def test_a_compiler_that_is_only_half_there_is_not_there(self):
        with tempfile.TemporaryDirectory() as directory, unittest.mock.patch.dict(os.environ, {"PATH": directory}):
            self.assertEqual(what_is_missing("mpicc.openmpi"), "mpicc.openmpi is not installed")
            half = Path(directory) / "mpicc.openmpi"
            half.write_text("#!/bin/sh\necho 'mpi.h: No such file or directory' >&2\nexit 1\n")
            half.chmod(0o755)
            self.assertIn("is installed in part only", what_is_missing("mpicc.openmpi"))
            self.assertIn("mpi.h: No such file or directory", what_is_missing("mpicc.openmpi"))
            half.write_text("#!/bin/sh\nexit 0\n")
            self.assertIsNone(what_is_missing("mpicc.openmpi"))


def run_tests(directory):
    if missing := what_is_missing(NEEDED):
        print(f"skipped: {missing}, and the programs are compiled with it")
        return SKIPPED
    SmallPrograms.programs = Programs(directory)
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(SmallPrograms)
    return 0 if unittest.TextTestRunner(verbosity=2).run(suite).wasSuccessful() else 1
