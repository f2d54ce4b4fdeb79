"""The package as it is installed."""

import ast
import graphlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Collection

import pytest

import chorus
from chorus.native.library import Library
from services import ROOT, program


def test_the_version_is_that_of_the_project() -> None:
    project = re.search(r"project\(chorus VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())
    written = re.search(r'^version = "(.*)"', (ROOT / "python/pyproject.toml").read_text(), re.M)
    assert project and written and project[1] == written[1] == chorus.__version__


def test_the_folder_of_a_build_finds_what_was_built(library: Library) -> None:
    build = program("chorus-coordinator").parents[1]
    story = """
import chorus
from chorus import native, programs
print(native.library.candidates()[0], programs.find("chorus-coordinator"))
"""
    own = {name: value for name, value in os.environ.items() if not name.startswith("CHORUS_")}
    found = subprocess.check_output(
        [sys.executable, "-c", story], env=own | {"PYTHONPATH": f"{build}/python"}, text=True
    )
    assert found.split() == [f"{build}/library/libchorus.so.0", f"{build}/bin/chorus-coordinator"]


def test_no_file_is_longer_than_it_should_be() -> None:
    for path in (ROOT / "python").rglob("*.py"):
        assert len(path.read_text().splitlines()) <= 400, path


def imports(module: str, path: pathlib.Path, modules: Collection[str]) -> set[str]:
    """The modules of the package that a module imports, for types alone as well."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            above = module.split(".")[: -node.level + (path.name == "__init__.py") or None]
            base = ".".join([*above, *([node.module] if node.module else [])])
            found |= {one if (one := f"{base}.{name.name}") in modules else base for name in node.names}
    return found - {module}


def test_modules_are_not_imported_in_a_circle() -> None:
    source = ROOT / "python/src"
    paths = {
        ".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__"): path
        for path in source.rglob("*.py")
    }
    imported = {module: imports(module, path, paths) for module, path in paths.items()}
    assert imported["chorus.native.group"] >= {"chorus.errors", "chorus.native.blocks"}
    graphlib.TopologicalSorter(imported).prepare()  # raises CycleError, which names the modules


def test_everything_public_has_a_docstring() -> None:
    native = (chorus.Worker, chorus.Group, chorus.Work, chorus.Registration)
    for kind in (chorus.Client, chorus.RemoteWorker, chorus.Parameter, chorus.EventStream, *native):
        for name in dir(kind):
            if not name.startswith("_") and callable(getattr(kind, name)):
                assert getattr(kind, name).__doc__, f"{kind.__name__}.{name}"


def wheel(path: pathlib.Path, environment: dict[str, str]) -> pathlib.Path:
    """Builds a wheel in a copy of the sources, as pip does; returns it, unpacked into `path`/installed."""
    pytest.importorskip("setuptools")
    pytest.importorskip("wheel")
    ignored = shutil.ignore_patterns("tests", "build", "*cache*", "*.egg-info")
    shutil.copytree(ROOT / "python", path / "python", ignore=ignored)
    shutil.copytree(ROOT / "library/include", path / "library/include")
    build = "from setuptools import build_meta; build_meta.build_wheel('..')"
    known = {name: value for name, value in os.environ.items() if not name.startswith("CHORUS_")}
    made = subprocess.run(
        [sys.executable, "-c", build], cwd=path / "python", env=known | environment, capture_output=True, text=True
    )
    assert made.returncode == 0, made.stderr
    (found,) = path.glob("chorus-*.whl")
    zipfile.ZipFile(found).extractall(path / "installed")
    return found


def test_a_wheel_is_whole_and_typed(tmp_path: pathlib.Path) -> None:
    assert wheel(tmp_path, {}).name.endswith("-py3-none-any.whl")
    assert (tmp_path / "installed/chorus/py.typed").exists()
    modules = "chorus, chorus.aio, chorus.launch, chorus.native.worker"
    ran = subprocess.run(
        [sys.executable, "-c", f"import {modules}; print(chorus.__file__, chorus.PeerLost('x'))"],
        env={"PYTHONPATH": str(tmp_path / "installed"), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout == f"{tmp_path}/installed/chorus/__init__.py x (peer_lost)\n"


def test_a_wheel_with_the_library_needs_nothing_else_of_chorus(library: Library, tmp_path: pathlib.Path) -> None:
    made = wheel(tmp_path, {"CHORUS_LIBRARY": os.environ["CHORUS_LIBRARY"], "CHORUS_BIN": os.environ["CHORUS_BIN"]})
    assert "-py3-none-linux_" in made.name
    package = tmp_path / "installed/chorus"
    assert (package / "include/chorus/chorus.h").exists()
    (package / "bin/chorus-coordinator").chmod(0o755)  # as pip does
    program = tmp_path / "train.py"
    program.write_text((ROOT / "docs/guides/python.md").read_text().split("```python\n")[1].split("```")[0])
    ran = subprocess.run(
        [sys.executable, str(program)],
        env={"PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
    )
    assert ran.stdout == f"{[[10.0] * 3] * 4}\n", ran.stderr
