"""Measures what was asked for and prints the tables; status 1 where something could not be measured."""
import os
import signal
import sys

from . import cores as looks
from . import api, fused, launches, limits, messages, plot, tensors
from .options import parse
from .processes import Failure, Workplace
from .programs import Programs
from .report import Report
from .results import cells, ratio
from .rounds import contest
from .systems import Pace, Systems
from .tables import all_reduce_table, notes, order_of
from .targets import count

ITERATIONS, WARMUP = 10000, 5
HTTP_ROUNDS, HTTP_CALLS, HTTP_QUICK_ROUNDS = 12, 5, 3


class Comparison:
    def __init__(self, options, workplace, report):
        self._options, self._workplace, self._report = options, workplace, report
        self._programs = Programs(options.build)
        self.complete = True

    def run(self):
        for part, title, measure in (("limits", "What the machine allows", self._limits),
                                     ("all_reduce", "all_reduce, f32 sum: medians over the rounds", self._all_reduce),
                                     ("fused", "Many small tensors, in one call and one by one", self._fused),
                                     ("api", "Through the C++ API", self._api),
                                     ("messages", "Messages between two members", self._messages),
                                     ("http", "One tensor over HTTP", self._http),
                                     ("launch", "Launches over REST", self._launch)):
            if part not in self._options.parts:
                continue
            try:
                measure(title)
            except Failure as failure:
                self._report.missing(title, failure)
                self.complete = False
            finally:
                self._workplace.stop_services()

    def _limits(self, title):
        progress("limits: sockets and memory")
        found = limits.measure(self._programs, self._options.bin, self._options.seconds, self._options.timeout)
        self._report.row({"kind": "limits", **found})
        self._report.table(title, *limits.table(found))

    def _all_reduce(self, title):
        options = self._options
        systems = Systems(self._workplace, self._programs, options.bin, options.bind)
        contenders = systems.contenders(options.links, options.peers)
        pace = Pace(options.seconds, ITERATIONS, WARMUP)
        rows = []
        for row in contest(contenders, options.rounds, options.ranks, options.sizes, pace, options.timeout,
                           lambda: looks.measure(self._programs, options.timeout), progress):
            rows.append(row)
            self._report.row({"kind": "all_reduce", **row})
        found = cells(rows, options.links)
        systems = order_of(system for cell in found for system in [*cell.times, *cell.missing])
        cores = os.cpu_count()
        remarks = notes(found, systems)
        yes, no, unknown = count(found, cores)
        self.complete = self.complete and not remarks
        self._report.table(title, *all_reduce_table(found, systems, cores), remarks + [
            f"targets: {yes} reached, {no} not, {unknown} without a figure; ratio: the best peer's time over Chorus's, "
            "rounds: the least and the largest ratio of one round; gloo has tcp only", *looks.remarks(rows)])
        for words, held in (("all cores had their full speed", looks.had_full_speed(rows)),
                            ("the cores stood as mostly to each other", looks.stood_as_mostly(rows))):
            kept = looks.of_rounds(rows, held)
            alike = [cell for cell in cells(kept, options.links) if ratio(cell) is not None]
            if alike and kept != rows:
                self._report.table(f"The same, of rounds in which {words}", *all_reduce_table(alike, systems, cores))
        self._report.picture("all_reduce.svg", plot.draw(found))

    def _fused(self, title):
        options = self._options
        rows = fused.measure(self._programs, options.bin, options.links, options.rounds, options.seconds, options.timeout,
                             progress)
        for row in rows:
            self._report.row({"kind": "fused", **row})
        self.complete = self.complete and all(row["correct"] for row in rows)
        self._report.table(title, *fused.table(rows), remarks=[fused.REMARK])

    def _api(self, title):
        options = self._options
        rows = api.measure(self._workplace, options.bin, options.links, options.rounds, options.seconds,
                           lambda: looks.measure(self._programs, options.timeout), options.timeout, progress)
        for row in rows:
            self._report.row({"kind": "api", **row})
        self.complete = self.complete and all(row["correct"] for row in rows)
        self._report.table(title, *api.table(rows), remarks=[api.REMARK, *looks.remarks(rows)])

    def _messages(self, title):
        options = self._options
        rows = messages.measure(self._workplace, self._programs, options.bin, options.links, options.peers,
                                options.rounds, options.seconds,
                                lambda: looks.measure(self._programs, options.timeout), options.timeout, progress)
        for row in rows:
            self._report.row({"kind": "messages", **row})
        self.complete = self.complete and all(row["correct"] for row in rows)
        self._report.table(title, *messages.table(rows), remarks=[messages.REMARK, *looks.remarks(rows)])

    def _http(self, title):
        progress("http: PUT and GET of one tensor")
        options = self._options
        rounds = HTTP_QUICK_ROUNDS if options.quick else HTTP_ROUNDS
        times, resident = tensors.measure(self._workplace, self._programs, options.bin, rounds, HTTP_CALLS,
                                          options.timeout)
        for (system, method), values in times.items():
            self._report.row({"kind": "http", "system": system, "method": method, "bytes": tensors.TENSOR_BYTES,
                              "round_medians_us": values})
        self._report.row({"kind": "memory", "resident_bytes": resident})
        self._report.table(title, *tensors.table(times))
        self._report.table("Memory of a worker", *tensors.memory_table(resident))

    def _launch(self, title):
        progress("launch: POST /v1/collectives")
        found = launches.measure(self._workplace, self._programs, self._options.bin, self._options.calls,
                                 self._options.timeout)
        self._report.row({"kind": "launch", **vars(found)})
        self._report.table(title, *launches.table(found), remarks=[launches.remark(found)])


def progress(words):
    print(f"  {words}", file=sys.stderr, flush=True)


def leave(*_):
    raise SystemExit(130)


def main():
    options = parse(sys.argv[1:])
    if options.self_test:
        from .self_test import run_tests
        return run_tests()
    if options.test_programs:
        from .programs_test import run_tests
        return run_tests(options.build)
    signal.signal(signal.SIGTERM, leave)
    signal.signal(signal.SIGINT, leave)
    with Workplace() as workplace:
        comparison = Comparison(options, workplace, Report(options.output))
        comparison.run()
    return 0 if comparison.complete else 1


sys.exit(main())
