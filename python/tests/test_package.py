"""The package as it is installed."""

import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

import pytest

import chorus
from services import ROOT


def test_the_version_is_that_of_the_project() -> None:
    project = re.search(r"project\(chorus VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())
    written = re.search(r'^version = "(.*)"', (ROOT / "python/pyproject.toml").read_text(), re.M)
    assert project and written and project[1] == written[1] == chorus.__version__


def test_no_file_is_longer_than_it_should_be() -> None:
    for path in (ROOT / "python").rglob("*.py"):
        assert len(path.read_text().splitlines()) <= 400, path


def test_everything_public_has_a_docstring() -> None:
    native = (chorus.Worker, chorus.Group, chorus.Work, chorus.Registration)
    for kind in (chorus.Client, chorus.RemoteWorker, chorus.Parameter, chorus.EventStream, *native):
        for name in dir(kind):
            if not name.startswith("_") and callable(getattr(kind, name)):
                assert getattr(kind, name).__doc__, f"{kind.__name__}.{name}"


def test_a_wheel_is_whole_and_typed(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("setuptools")
    pytest.importorskip("wheel")
    shutil.copytree(ROOT / "python", tmp_path / "python", ignore=shutil.ignore_patterns("tests", "build", "*cache*"))
    build = "from setuptools import build_meta; build_meta.build_wheel('..')"
    subprocess.run([sys.executable, "-c", build], cwd=tmp_path / "python", check=True, capture_output=True)
    (wheel,) = tmp_path.glob("chorus-*.whl")
    assert wheel.name.endswith("-py3-none-any.whl")
    zipfile.ZipFile(wheel).extractall(tmp_path / "installed")
    assert (tmp_path / "installed/chorus/py.typed").exists()
    ran = subprocess.run(
        [
            sys.executable,
            "-c",
            "import chorus, chorus.aio, chorus.launch, chorus.native.worker; print(chorus.__file__, chorus.PeerLost('x'))",
        ],
        env={"PYTHONPATH": str(tmp_path / "installed"), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout == f"{tmp_path}/installed/chorus/__init__.py x (peer_lost)\n"
