"""Tests of what needs no machine to measure: arithmetic, targets, tables, plot, and what happens when a child fails."""
import sys
import tempfile
import time
import unittest
import xml.dom.minidom
from pathlib import Path

from . import api, cores, fused, launches, plot, tensors
from .options import parse
from .processes import Failure, Workplace, run, run_for_json
from .results import (best_peer, cells, median, parse_size, percentile, ratio, ratio_range, readable_size)
from .rounds import affordable, contest, rotated
from .systems import Contender, Pace
from .tables import all_reduce_table, as_markdown, as_text, notes, order_of
from .targets import count, describe, mark, targets_of

KIB, MIB = 1 << 10, 1 << 20


def row(system, p50_us, link="shm", ranks=2, size=4, number=0, **more):
    return {"round": number, "system": system, "link": link, "ranks": ranks, "bytes": size, "p50_us": p50_us,
            "correct": True, **more}


def missing(system, why, **more):
    kept = row(system, 0, **more)
    del kept["p50_us"], kept["correct"]
    return {**kept, "missing": why}


def one_cell(*rows):
    return cells(list(rows), ["shm", "tcp"])[0]


class Arithmetic(unittest.TestCase):
    def test_median_and_percentile(self):
        self.assertEqual(median([3, 1, 2]), 2)
        self.assertEqual(median([4, 1, 2, 3]), 2.5)
        self.assertEqual(percentile(range(1, 101), 0.99), 99)
        self.assertEqual(percentile([7], 0.99), 7)

    def test_sizes(self):
        self.assertEqual([parse_size(text) for text in ("4", "1K", "64M", "2G")], [4, KIB, 64 * MIB, 2 << 30])
        self.assertEqual([readable_size(size) for size in (4, KIB, 1025, 64 * MIB)],
                         ["4 B", "1 KiB", "1025 B", "64 MiB"])
        for wrong in ("", "K", "-1", "1.5M", "4T"):
            self.assertRaises(ValueError, parse_size, wrong)

    def test_medians_over_rounds(self):
        cell = one_cell(*[row("chorus", time, number=n) for n, time in enumerate((1, 9, 2))])
        self.assertEqual(cell.times, {"chorus": 2})

    def test_the_fastest_variant_counts(self):
        cell = one_cell(row("gloo/default", 30), row("gloo/halving_doubling", 20), row("chorus", 2))
        self.assertEqual(cell.times["gloo"], 20)
        self.assertEqual(ratio(cell, "gloo"), 10)

    def test_ratio_is_to_the_best_peer(self):
        cell = one_cell(row("chorus", 2), row("openmpi", 8), row("mpich", 6))
        self.assertEqual(best_peer(cell), "mpich")
        self.assertEqual(ratio(cell), 3)
        self.assertEqual(ratio(cell, "openmpi"), 4)
        self.assertIsNone(ratio(cell, "gloo"))

    def test_the_range_of_the_ratio_is_that_of_single_rounds(self):
        cell = one_cell(row("chorus", 2, number=0), row("chorus", 4, number=1), row("mpich", 8, number=0),
                        row("mpich", 8, number=1), row("openmpi", 6, number=0), row("openmpi", 12, number=1))
        self.assertEqual(ratio_range(cell), (2, 3))

    def test_wrong_results_are_no_figure(self):
        cell = one_cell(row("chorus", 2), row("mpich", 1, correct=False))
        self.assertEqual(cell.missing, {"mpich": "wrong results"})
        self.assertIsNone(ratio(cell))

    def test_one_failed_round_makes_a_figure_missing(self):
        cell = one_cell(row("chorus", 2, number=0), missing("chorus", "crashed", number=1), row("mpich", 1))
        self.assertEqual(cell.missing, {"chorus": "crashed"})

    def test_a_row_may_stand_in_further_links(self):
        found = cells([row("gloo/default", 20, link="tcp", also=["shm"]), row("chorus", 2)], ["shm", "tcp"])
        self.assertEqual([(cell.link, set(cell.times)) for cell in found],
                         [("shm", {"chorus", "gloo"}), ("tcp", {"gloo"})])


class Cores(unittest.TestCase):
    def at(self, system, number=0, **found):
        return {**row(system, 2, number=number), **found}

    def test_a_row_knows_both_looks(self):
        near, far = {"turns_per_ns": [1.0, 0.9], "line_ns": 110}, {"turns_per_ns": [0.5, 1.1], "line_ns": 430}
        self.assertEqual(cores.fields(near, far), {"slowest_core": 0.5, "fastest_core": 1.1, "nearest_ns": 110,
                                                   "farthest_ns": 430})
        alone = {"turns_per_ns": [1.0], "line_ns": None}
        self.assertEqual(cores.fields(alone, alone), {"slowest_core": 1.0, "fastest_core": 1.0})

    def test_turns_beside_a_neighbour_are_told_from_the_others(self):
        rows = [self.at("chorus", slowest_core=0.95, fastest_core=1.0), self.at("mpich", slowest_core=0.55, fastest_core=0.98)]
        self.assertEqual(cores.had_full_speed(rows), [True, False])
        self.assertEqual(cores.remarks(rows)[0].count("1 of 2 turns"), 1)
        self.assertEqual(len(cores.remarks(rows)), 1)

    def test_turns_in_which_cores_stood_elsewhere_are_told_from_the_others(self):
        def looks(number, nearest, farthest):
            return self.at("chorus", number, nearest_ns=nearest, farthest_ns=farthest)
        rows = [looks(0, 120, 150), looks(1, 140, 560), looks(2, 130, 140), looks(3, 55, 140), looks(4, 150, 170)]
        self.assertEqual(cores.stood_as_mostly(rows), [True, False, True, False, True])
        self.assertEqual(cores.places(rows), ["as mostly", "moved", "as mostly", "moved", "as mostly"])
        self.assertIn("3 of 5 turns", cores.remarks(rows)[1])
        self.assertIn("55 to 560", cores.remarks(rows)[1])

    def test_cores_are_nearer_or_farther_than_mostly(self):
        def looks(number, nearest, farthest):
            return self.at("chorus", number, nearest_ns=nearest, farthest_ns=farthest)
        rows = [looks(0, 110, 120), looks(1, 110, 120), looks(2, 110, 120), looks(3, 500, 530), looks(4, 54, 55), self.at("chorus")]
        self.assertEqual(cores.places(rows)[2:], ["as mostly", "farther", "nearer", None])

    def test_rounds_count_in_which_it_held_for_everybody(self):
        rows = [self.at("chorus"), self.at("mpich"), self.at("chorus", 1), self.at("mpich", 1)]
        self.assertEqual(cores.of_rounds(rows, [True, True, True, False]), rows[:2])

    def test_of_cores_that_differ_the_slower_one_decides(self):
        self.assertEqual(cores.had_full_speed([self.at("chorus", slowest_core=0.6, fastest_core=1.0)]), [False])

    def test_what_was_not_measured_is_not_taken_for_undisturbed(self):
        self.assertEqual(cores.had_full_speed([missing("chorus", "crashed")]), [False])
        self.assertEqual(cores.stood_as_mostly([missing("chorus", "crashed")]), [False])


class Targets(unittest.TestCase):
    def of(self, link, ranks, size, cores=2):
        return [tuple(target) for target in targets_of(link, ranks, size, cores)]

    def test_shared_memory(self):
        self.assertEqual(self.of("shm", 2, MIB), [(None, 5)])
        self.assertEqual(self.of("shm", 4, 64 * MIB), [(None, 5)])
        self.assertEqual(self.of("shm", 2, 128 * KIB), [(None, 3)])
        self.assertEqual(self.of("shm", 4, 4), [(None, 1)])
        self.assertEqual(self.of("shm", 2, 8 * KIB), [])
        self.assertEqual(self.of("shm", 8, MIB, cores=16), [])

    def test_tcp(self):
        self.assertEqual(self.of("tcp", 2, MIB), [(None, 1.05)])
        self.assertEqual(self.of("tcp", 2, KIB), [("openmpi", 1), ("gloo", 10)])
        self.assertEqual(self.of("tcp", 2, 8 * KIB), [])
        self.assertEqual(self.of("tcp", 4, MIB, cores=4), [])

    def test_more_ranks_than_cores(self):
        self.assertEqual(self.of("tcp", 4, 8 * KIB, cores=2), [(None, 1)])
        self.assertEqual(self.of("shm", 8, MIB, cores=2), [(None, 1)])
        self.assertEqual(self.of("shm", 4, MIB, cores=2), [(None, 5)])

    def test_marks(self):
        self.assertEqual(mark(one_cell(row("chorus", 2, size=MIB), row("mpich", 10, size=MIB)), 2), "yes")
        self.assertEqual(mark(one_cell(row("chorus", 2, size=MIB), row("mpich", 9.9, size=MIB)), 2), "NO")
        self.assertEqual(mark(one_cell(row("chorus", 2, size=MIB)), 2), "?")
        self.assertEqual(mark(one_cell(row("chorus", 2, size=8 * KIB), row("mpich", 1, size=8 * KIB)), 2), "-")

    def test_one_missed_target_of_two_is_a_miss(self):
        def tcp(gloo_us):
            return one_cell(*[row(system, time, link="tcp") for system, time in
                              (("chorus", 8), ("openmpi", 8), ("gloo/default", gloo_us))])
        self.assertEqual(mark(tcp(80), 2), "yes")
        self.assertEqual(mark(tcp(79), 2), "NO")
        self.assertEqual(describe(tcp(80), 2), "1 openmpi, 10 gloo")

    def test_count(self):
        found = cells([row("chorus", 1), row("mpich", 2), row("chorus", 1, size=MIB), row("mpich", 2, size=MIB),
                       row("chorus", 1, size=KIB)], ["shm"])
        self.assertEqual(count(found, 2), (1, 1, 1))


class Presentation(unittest.TestCase):
    def setUp(self):
        self.cells = cells([row("chorus", 2.5, size=MIB), row("mpich", 20, size=MIB), row("chorus", 1.5),
                            missing("chorus", "no shm", ranks=4), row("mpich", 9, ranks=4)], ["shm", "tcp"])

    def test_table(self):
        header, rows = all_reduce_table(self.cells, ["chorus", "mpich"], 2)
        self.assertEqual(header[:5], ["link", "p", "size", "chorus us", "mpich us"])
        self.assertEqual(rows[1], ["shm", "2", "1 MiB", "2.50", "20.0", "mpich", "8.00", "8.00..8.00", "5", "yes"])
        self.assertEqual(rows[2], ["shm", "4", "4 B", "-", "9.00", "mpich", "-", "-", "1", "?"])

    def test_text_and_markdown_have_all_rows(self):
        header, rows = all_reduce_table(self.cells, ["chorus", "mpich"], 2)
        self.assertEqual(len(as_text(header, rows).splitlines()), 4)
        self.assertEqual(len({len(line.split("|")) for line in as_markdown(header, rows).splitlines()}), 1)

    def test_notes_say_why_once(self):
        self.assertEqual(notes(self.cells, ["chorus", "mpich"]), ["chorus over shm, p = 4, 4 B: no shm"])

    def test_chorus_comes_first(self):
        self.assertEqual(order_of(["mpich", "gloo", "chorus"]), ["chorus", "gloo", "mpich"])

    def test_plot_has_a_panel_per_link_and_ranks_and_a_line_per_system(self):
        svg = xml.dom.minidom.parseString(plot.draw(self.cells))
        titles = [node.firstChild.data for node in svg.getElementsByTagName("text")]
        self.assertIn("shm, p = 2", titles)
        self.assertIn("shm, p = 4", titles)
        self.assertEqual(len(svg.getElementsByTagName("polyline")), 3)
        self.assertEqual(len(svg.getElementsByTagName("circle")), 4)

    def test_nothing_measured_is_no_plot(self):
        self.assertIsNone(plot.draw(cells([missing("chorus", "no shm")], ["shm"])))

    def test_http(self):
        times = {(system, method): [time] for method in ("PUT", "GET")
                 for system, time in (("raw socket", 40000), ("chorus", 50000), ("nginx", 100000))}
        _, rows = tensors.table(times)
        self.assertEqual(rows[0], ["PUT 64 MiB", "40.0", "50.0", "100.0", "1.34", "80%", "2.00", "80%", "yes"])
        self.assertEqual(tensors.memory_table(192 << 20)[1][0][-1], "yes")
        self.assertEqual(tensors.memory_table(193 << 20)[1][0][-1], "NO")

    def test_many_small_tensors_by_where_the_cores_were(self):
        def turn(number, link, each_us, all_us, line_ns, **more):
            return {"round": number, "system": "fused", "ranks": 2, "link": link, "each_us": each_us, "all_us": all_us,
                    "nearest_ns": line_ns, "farthest_ns": line_ns, **more}
        bare = {"bare_each_us": 800, "bare_all_us": 100}
        rows = [turn(0, "tcp", 900, 150, 110, **bare), turn(1, "tcp", 1000, 100, 110, **bare), turn(0, "shm", 150, 10, 110),
                turn(2, "tcp", 1300, 400, 500, bare_each_us=1200, bare_all_us=300)]
        header, lines = fused.table(rows)
        self.assertEqual(lines[0], ["shm", "as mostly", "110..110", "1", "150", "10.0", "15.0 (15.0..15.0)", "-", "-", "-", "5", "yes"])
        self.assertEqual(lines[1], ["tcp", "as mostly", "110..110", "2", "950", "125", "8.00 (6.00..10.0)", "800", "100",
                                    "8.00 (8.00..8.00)", "5", "yes"])
        self.assertEqual(lines[2][1:], ["farther", "500..500", "1", "1300", "400", "3.25 (3.25..3.25)", "1200", "300",
                                        "4.00 (4.00..4.00)", "5", "NO"])
        self.assertEqual({len(line) for line in lines}, {len(header)})

    def test_the_api_beside_the_engine(self):
        rows = [{"link": link, "bytes": size, "engine_us": engine, "api_us": ours}
                for link, size, engine, ours in (("tcp", 4, 10.0, 11.0), ("shm", 1 << 20, 40.0, 40.0), ("shm", 4, 0.4, 0.5),
                                                 ("shm", 4, 0.5, 0.5), ("shm", 4, 0.4, 0.44))]
        header, lines = api.table(rows)
        self.assertEqual(lines, [["shm", "4 B", "3", "0.40", "0.50", "1.10 (1.00..1.25)"],
                                 ["shm", "1 MiB", "1", "40.0", "40.0", "1.00 (1.00..1.00)"],
                                 ["tcp", "4 B", "1", "10.0", "11.0", "1.10 (1.10..1.10)"]])
        self.assertEqual({len(line) for line in lines}, {len(header)})

    def test_launches(self):
        found = launches.Launches([900.0] * 99 + [5000.0], [300.0], [1500.0, 1400.0, 1600.0],
                                  [{"turns_per_ns": [1.0, 0.5], "line_ns": 110}, {"turns_per_ns": [0.9, 0.6], "line_ns": 99}])
        _, rows = launches.table(found, 2)
        self.assertEqual(rows[0][1:], ["100", "900", "900", "p50 < 1000 us", "yes"])
        self.assertEqual(rows[1][1:], ["100", "1500", "", "", ""])
        self.assertEqual(rows[2], ["which is on 2 cores at least", "100", "750", "", "", ""])
        self.assertEqual(rows[3][1:], ["1", "300", "300", "", ""])
        self.assertEqual(launches.remark(found), "The cores did 0.50 to 1.00 turns per ns meanwhile; a cache line took 99 to "
                                                 "110 ns from one core to the next and back.")


class Rounds(unittest.TestCase):
    figures = 'echo "{\\"bytes\\":$b,\\"p50_us\\":1,\\"p99_us\\":2,\\"iterations\\":3,\\"correct\\":true}"'

    def shell(self, name, script):
        return Contender(name, "tcp", [], lambda pace, ranks, sizes: ["sh", "-c", script], {})

    def contest(self, contenders, rounds=2, timeout=5):
        asked = []
        look = {"turns_per_ns": [1.0, 0.5], "line_ns": 110}
        rows = list(contest(contenders, rounds, [2], [4, 8], Pace(0.1, 1, 1), timeout, lambda: look, asked.append))
        return rows, asked

    def test_everybody_in_turn_and_nobody_always_first(self):
        says = f"for b in 4 8; do {self.figures}; done"
        rows, asked = self.contest([self.shell("a", says), self.shell("b", says)])
        self.assertEqual([words.split(": ")[1][0] for words in asked], ["a", "b", "b", "a"])
        self.assertEqual(len(rows), 8)
        self.assertEqual(rotated([1, 2, 3], 4), [2, 3, 1])
        self.assertEqual({(row["slowest_core"], row["fastest_core"]) for row in rows}, {(0.5, 1.0)})

    def test_who_cannot_be_measured_says_why_and_is_not_asked_again(self):
        rows, asked = self.contest([self.shell("a", "echo no such link >&2; exit 2")])
        self.assertEqual(len(asked), 1)
        self.assertEqual({row["missing"] for row in rows}, {"no such link"})
        self.assertEqual(len(rows), 4)

    def test_what_was_printed_before_the_end_counts(self):
        rows, _ = self.contest([self.shell("a", f"b=4; {self.figures}; exec sleep 30")], rounds=1, timeout=0.3)
        self.assertEqual([row.get("missing") for row in rows], [None, "not finished after 0.3 s"])

    def test_what_does_not_fit_into_memory_is_left_out(self):
        self.assertEqual(affordable(4, [4, MIB], 10 * MIB), ([4], [MIB]))


class Processes(unittest.TestCase):
    def test_a_child_that_hangs_is_ended_with_its_children(self):
        began = time.monotonic()
        output, problem = run(["sh", "-c", "echo begun; sleep 60 & sleep 60"], timeout=0.3)
        self.assertEqual((output, problem), ("begun\n", "not finished after 0.3 s"))
        self.assertLess(time.monotonic() - began, 10)

    def test_memory_that_a_killed_child_shared_is_removed(self):
        with tempfile.NamedTemporaryFile(dir="/dev/shm", delete=False) as file:
            file.write(b"shared")
        self.addCleanup(Path(file.name).unlink, missing_ok=True)
        script = (f"import mmap, time; f = open({file.name!r}, 'r+b'); m = mmap.mmap(f.fileno(), 0); "
                  "print('mapped', flush=True); time.sleep(60)")
        self.assertEqual(run([sys.executable, "-c", script], timeout=1), ("mapped\n", "not finished after 1 s"))
        self.assertFalse(Path(file.name).exists())

    def test_a_missing_program_is_said(self):
        self.assertIn("No such file", run(["/nonexistent/program"], timeout=1)[1])

    def test_other_output_beside_json_is_passed_over(self):
        self.assertEqual(run_for_json(["echo", 'hello\n{"a": 1}'], timeout=5), ([{"a": 1}], None))

    def test_services_end_and_the_directory_goes(self):
        with Workplace() as workplace:
            service = workplace.start("service", ["sh", "-c", "echo ready 7; exec sleep 60"])
            self.assertEqual(service.wait_for_line("ready "), "7")
            directory = workplace.directory
        self.assertIsNotNone(service.process.poll())
        self.assertFalse(directory.exists())

    def test_a_service_that_fails_says_its_last_words(self):
        with Workplace() as workplace:
            service = workplace.start("service", ["sh", "-c", "echo no port >&2; exit 1"])
            with self.assertRaisesRegex(Failure, "no port"):
                service.wait_for_line("ready ", timeout=5)


class Options(unittest.TestCase):
    def test_defaults_and_quick(self):
        self.assertEqual(parse([]).ranks, [2, 4, 8])
        self.assertEqual(parse(["--quick"]).rounds, 1)
        self.assertEqual(parse(["--quick", "--rounds", "3", "--sizes", "1K,4"]).rounds, 3)
        self.assertEqual(parse(["--sizes", "1K,4"]).sizes, [4, KIB])
        self.assertEqual(parse(["--links", "tcp", "--peers", "gloo"]).links, ["tcp"])


def run_tests():
    suite = unittest.defaultTestLoader.loadTestsFromModule(__import__(__name__, fromlist=["x"]))
    return 0 if unittest.TextTestRunner(verbosity=1).run(suite).wasSuccessful() else 1
