"""Runs docs/guides/python.md as it is written: every block of Python has to print what its comments say.

``pages.py PAGE`` does it where the packages are installed, with services at their usual ports.
"""

from __future__ import annotations

import contextlib
import io
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

URL = "http://127.0.0.1:7070"


def parts(page: str) -> tuple[str, str]:
    """The part about members, and that which asks over REST and needs workers a and b."""
    members, rest = page.split("\n## Tensors on workers\n")
    return members, rest


def run_as_written(page: str, url: str, path: pathlib.Path, environment: dict[str, str]) -> int:
    """Runs the blocks of a page with a coordinator at `url`, programs among them in `path`; returns how many."""
    blocks = re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S)
    assert blocks
    names: dict[str, Any] = {}
    for block in blocks:
        shown = re.findall(r"^# (.*)$", block, re.M)
        code = block.replace(URL, url)
        if "__main__" in block or "chorus.init()" in block:
            printed = as_program(path / "train.py", code, environment)
        else:
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                exec(code, names)
            printed = output.getvalue()
        assert printed.splitlines() == shown, f"{block}\nprinted {printed}"
    return len(blocks)


def as_program(path: pathlib.Path, code: str, environment: dict[str, str]) -> str:
    """Runs a block that starts processes, or is started several times; returns what it prints."""
    path.write_text(code)
    command = ["-m", "chorus.launch", "--nproc", "2", str(path)] if "chorus.init()" in code else [str(path)]
    return subprocess.run(
        [sys.executable, *command], env=environment, stdout=subprocess.PIPE, text=True, check=True
    ).stdout


@contextlib.contextmanager
def coordinator_and(workers: dict[str, int]) -> Iterator[None]:
    """Services at their usual ports; workers by name and port."""
    commands = [
        ["chorus-worker", "--port", str(port), "--id", name, "--coordinator", URL] for name, port in workers.items()
    ]
    services = []
    try:
        for command in (["chorus-coordinator"], *commands):
            services.append(subprocess.Popen([*command, "--log-level", "error"], stdout=subprocess.PIPE, text=True))
            assert services[-1].stdout is not None and services[-1].stdout.readline().startswith("listening on ")
        import chorus

        with chorus.Client(URL) as client:
            client.wait_for_workers(list(workers))
        yield
    finally:
        for service in services:
            service.kill()
            service.wait()


def main() -> None:
    number = 0
    with tempfile.TemporaryDirectory() as folder:
        members, rest = parts(pathlib.Path(sys.argv[1]).read_text())
        uses: list[tuple[str, dict[str, int]]] = [(members, {}), (rest, {"a": 7071, "b": 7072})]
        for page, workers in uses:
            with coordinator_and(workers):
                number += run_as_written(page, URL, pathlib.Path(folder), dict(os.environ))
    sys.stdout.write(f"{number} blocks of the page have printed what it says\n")


if __name__ == "__main__":
    main()
