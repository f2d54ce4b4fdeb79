#!/usr/bin/env python3
"""Runs every line of docs/guides/cookbook.md against live services, and compares what it prints with what the page shows.

    tests/contract/cookbook.py BINARIES [docs/guides/cookbook.md]
"""

import os
import pathlib
import re
import subprocess
import sys

from services import Fleet

ROOT = pathlib.Path(__file__).resolve().parents[2]


def lines_of(page):
    """(command, what it prints) of the blocks that are marked as sh."""
    for block in re.findall(r"^```sh\n(.*?)^```$", page, re.M | re.S):
        for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
            command, _, shown = part.partition("\n")
            yield command, shown


def as_shown(shown, printed):
    """Three dots stand for anything; an answer that ends with them may go on."""
    pattern = ".*?".join(re.escape(piece) for piece in shown.strip("\n").split("..."))
    return re.fullmatch(pattern, printed.strip("\n"), re.S) is not None


def certificates(directory):
    run = lambda command: subprocess.run(command, shell=True, cwd=directory, check=True, capture_output=True)
    key = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"
    run(f"openssl req -x509 {key} -keyout ca.key -out ca.pem -days 2 -subj /CN=chorus-ca")
    run(f"openssl req {key} -keyout c.key -out c.csr -subj /CN=c")
    (directory / "names").write_text("subjectAltName=IP:127.0.0.1")
    run("openssl x509 -req -in c.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -out c.pem -extfile names")


def main(binaries, path=ROOT / "docs/guides/cookbook.md"):
    binaries = pathlib.Path(binaries).resolve()
    key = pathlib.Path(f"/dev/shm/chorus_cookbook_{os.getpid()}")
    with Fleet(binaries, 0) as place:
        directory = place.path
        certificates(directory)
        secure = ["--tls-cert", "c.pem", "--tls-key", "c.key", "--tls-ca", "ca.pem"]
        secure = [str(directory / one) if one.endswith((".pem", ".key")) else one for one in secure]
        (directory / "tokens.jsonl").touch()
        secured = place.start(
            "coordinator", f"{binaries}/chorus-coordinator", [*secure, "--auth-tokens", str(directory / "tokens.jsonl")]
        )
        (directory / "checkpoints").mkdir()
        flags = ["--allow-client-shm", "--checkpoint-directory", str(directory / "checkpoints")]
        with Fleet(binaries, 2, worker_flags=flags) as fleet:
            # One shell for all: variables and files stay.
            environment = {
                "PATH": f"{binaries}:{os.environ['PATH']}", "C": fleet.coordinator.url, "W0": fleet.workers[0].url,
                "W1": fleet.workers[1].url, "S": secured.url, "KEY": f"/{key.name}", "LC_ALL": "C",
            }  # fmt: skip
            shell = subprocess.Popen(
                ["bash"], cwd=directory, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )  # fmt: skip
            count, wrong, mark = 0, [], "--- the end of a line ---"
            for command, shown in lines_of(pathlib.Path(path).read_text()):
                shell.stdin.write(f"{command}\nprintf '\\n%s\\n' '{mark}'\n")
                shell.stdin.flush()
                printed = ""
                while not printed.endswith(f"\n{mark}\n"):
                    line = shell.stdout.readline()
                    if not line:
                        raise RuntimeError(f"the shell has ended at: {command}\n{printed}")
                    printed += line
                printed = printed.removesuffix(f"\n{mark}\n")
                count += 1
                if not as_shown(shown, printed):
                    wrong.append(f"$ {command}\nshown:\n{shown}printed:\n{printed}\n")
            shell.stdin.close()
            shell.wait(10)
            shell.stdout.close()
    key.unlink(missing_ok=True)
    print("\n".join(wrong))
    print(f"cookbook: {count} lines, {len(wrong)} differ")
    return 1 if wrong or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
