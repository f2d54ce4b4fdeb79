"""docs/guides/python.md: every block of Python runs as written, and prints what its comments say."""

import contextlib
import io
import os
import pathlib
import re
import subprocess
import sys
from typing import Any

from chorus.native.library import Library
from services import ROOT, Fleet

PAGE = (ROOT / "docs/guides/python.md").read_text()


MEMBERS, REST = PAGE.split("\n## Tensors on workers\n")


def test_examples_of_members_run_as_written(library: Library, tmp_path: pathlib.Path) -> None:
    with Fleet(workers=()) as fleet:
        run_as_written(MEMBERS, fleet.coordinator.url, tmp_path)


def test_examples_over_rest_run_as_written(tmp_path: pathlib.Path) -> None:
    with Fleet() as fleet:
        fleet.client.delete_group("all")
        run_as_written(REST, fleet.coordinator.url, tmp_path)


def run_as_written(page: str, url: str, path: pathlib.Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S)
    assert blocks
    names: dict[str, Any] = {}
    for block in blocks:
        shown = re.findall(r"^# (.*)$", block, re.M)
        code = block.replace("http://127.0.0.1:7070", url)
        if "__main__" in block or "chorus.init()" in block:
            printed = as_program(path / "train.py", code)
        else:
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                exec(code, names)
            printed = output.getvalue()
        assert printed.splitlines() == shown, block


def as_program(path: pathlib.Path, code: str) -> str:
    """Runs a block that starts processes, or is started several times; returns what it prints."""
    path.write_text(code)
    command = ["-m", "chorus.launch", "--nproc", "2", str(path)] if "chorus.init()" in code else [str(path)]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "python/src")}
    return subprocess.run(
        [sys.executable, *command], env=environment, stdout=subprocess.PIPE, text=True, check=True
    ).stdout


def test_the_readme_fits_and_names_the_page() -> None:
    readme = pathlib.Path(ROOT / "python/README.md").read_text()
    assert readme.count("\n") <= 15 and "docs/guides/python.md" in readme
