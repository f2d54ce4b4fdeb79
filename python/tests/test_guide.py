"""docs/guides/python.md: every block of Python runs as written, and prints what its comments say."""

import os
import pathlib

import pages
from chorus.native.library import Library
from services import ROOT, Fleet

MEMBERS, REST = pages.parts((ROOT / "docs/guides/python.md").read_text())
ENVIRONMENT = {"PYTHONPATH": str(ROOT / "python/src")}


def test_examples_of_members_run_as_written(library: Library, tmp_path: pathlib.Path) -> None:
    with Fleet(workers=()) as fleet:
        pages.run_as_written(MEMBERS, fleet.coordinator.url, tmp_path, os.environ | ENVIRONMENT)


def test_examples_over_rest_run_as_written(tmp_path: pathlib.Path) -> None:
    with Fleet() as fleet:
        fleet.client.delete_group("all")
        pages.run_as_written(REST, fleet.coordinator.url, tmp_path, os.environ | ENVIRONMENT)


def test_the_readme_fits_and_names_the_page() -> None:
    readme = pathlib.Path(ROOT / "python/README.md").read_text()
    assert readme.count("\n") <= 15 and "docs/guides/python.md" in readme


def test_the_program_of_the_projects_readme(library: Library, tmp_path: pathlib.Path) -> None:
    block = (ROOT / "README.md").read_text().split("```python\n")[1].split("```")[0]
    assert pages.as_program(tmp_path / "train.py", block, os.environ | ENVIRONMENT) == "[10.0, 10.0, 10.0]\n"
