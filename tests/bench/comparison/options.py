"""What can be chosen on the command line."""
import argparse
from pathlib import Path

from .results import parse_size
from .systems import PEERS

ROOT = Path(__file__).resolve().parents[3]
PARTS = ["limits", "all_reduce", "fused", "api", "messages", "http", "launch"]
LINKS = ["shm", "tcp"]
ROUNDS, QUICK_ROUNDS = 5, 1
SIZES, QUICK_SIZES = "4,1K,8K,128K,1M,8M,64M", "4,1K,128K,1M,8M"
RANKS, QUICK_RANKS = "2,4,8", "2,4"
SECONDS, QUICK_SECONDS = 0.3, 0.05


def names_of(known):
    def parse(text):
        chosen = [name for name in text.split(",") if name]
        for name in chosen:
            if name not in known:
                raise argparse.ArgumentTypeError(f"{name} is none of {', '.join(known)}")
        return chosen
    return parse


def sizes(text):
    try:
        found = sorted({parse_size(part) for part in text.split(",")})
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    if any(size < 4 or size % 4 for size in found):
        raise argparse.ArgumentTypeError("sizes are of f32 vectors: multiples of 4")
    return found


def counts(text):
    try:
        found = sorted({int(part) for part in text.split(",")})
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"not a list of numbers: {text}") from error
    if any(not 2 <= count <= 256 for count in found):
        raise argparse.ArgumentTypeError("from 2 to 256 ranks")
    return found


def positive(kind):
    def parse(text):
        try:
            value = kind(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(f"not a number: {text}") from error
        if not 0 < value < 1e6:
            raise argparse.ArgumentTypeError(f"out of range: {text}")
        return value
    return parse


def parse(arguments):
    parser = argparse.ArgumentParser(
        prog="tests/bench/compare",
        description="Measures Chorus, Open MPI, MPICH and Gloo in turns on this machine and prints one table. "
                    "Installs and builds what the peers need; Chorus itself must have been built.")
    add = parser.add_argument
    add("--parts", type=names_of(PARTS), default=PARTS,
        help=f"what is measured (default: {','.join(PARTS)})")
    add("--peers", type=names_of(PEERS), default=PEERS,
        help=f"whom all_reduce is held against (default: {','.join(PEERS)})")
    add("--links", type=names_of(LINKS), default=LINKS, help="transports of all_reduce (default: shm,tcp)")
    add("--ranks", type=counts, help=f"numbers of processes (default: {RANKS})", default=argparse.SUPPRESS)
    add("--sizes", type=sizes, help=f"bytes of a vector (default: {SIZES})", default=argparse.SUPPRESS)
    add("--rounds", type=positive(int), help=f"turns of everybody (default: {ROUNDS})", default=argparse.SUPPRESS)
    add("--seconds", type=positive(float), default=argparse.SUPPRESS,
        help=f"about so long per size, system and round (default: {SECONDS})")
    add("--timeout", type=positive(float), default=120, help="seconds after which a child is stopped (default: 120)")
    add("--bind", choices=["auto", "none"], default="auto",
        help="auto: with more ranks than cores everybody's ranks stay on a core each, in turns (default: auto)")
    add("--calls", type=positive(int), default=250, help="launches whose latency is measured (default: 250)")
    add("--quick", action="store_true",
        help=f"less of everything: --rounds {QUICK_ROUNDS} --ranks {QUICK_RANKS} --sizes {QUICK_SIZES} "
             f"--seconds {QUICK_SECONDS}")
    add("--bin", type=Path, default=ROOT / "build/release/bin", metavar="DIR", 
        help="where Chorus was built (default: build/release/bin)")
    add("--build", type=Path, default=ROOT / "build/bench-peers", metavar="DIR", 
        help="where the peers' programs are built (default: build/bench-peers)")
    add("--output", type=Path, metavar="DIR", help="write rows.jsonl, report.md and all_reduce.svg there")
    add("--no-install", action="store_true", help="do not look for missing packages")
    add("--self-test", action="store_true", help="test the arithmetic, the tables and the plot, and measure nothing")
    add("--test-programs", action="store_true",
        help="compile the small programs into --build, run each for a moment, and measure nothing")
    options = parser.parse_args(arguments)
    for name, value in (("rounds", QUICK_ROUNDS if options.quick else ROUNDS),
                        ("seconds", QUICK_SECONDS if options.quick else SECONDS),
                        ("ranks", counts(QUICK_RANKS if options.quick else RANKS)),
                        ("sizes", sizes(QUICK_SIZES if options.quick else SIZES))):
        if not hasattr(options, name):
            setattr(options, name, value)
    return options
