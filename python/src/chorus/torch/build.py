"""The C++ extension: compiled when it is first needed, and kept in ``~/.cache/chorus``, or below XDG_CACHE_HOME.

``python -m chorus.torch`` compiles it beforehand, as for an image, and prints where it is.
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import importlib.util
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import sysconfig
from types import ModuleType

import torch

from ..errors import ChorusError
from ..native import library

NAME = "chorus_process_group"
SOURCE = pathlib.Path(__file__).parent / "source"


class BuildFailed(ChorusError):
    """The extension cannot be compiled; the text has what the compiler said."""


@functools.lru_cache(maxsize=None)
def load() -> ModuleType:
    """Returns the extension, compiled if that was not done yet.

    Raises
    ------
    BuildFailed
        A compiler or headers are missing, or the cache cannot be written.
    LibraryNotFound
        libchorus.so.0 is not installed, or has another version.
    """
    library.load()  # first: the extension is then bound to this one
    spec = importlib.util.spec_from_file_location(NAME, build())
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def build() -> pathlib.Path:
    """Compiles the extension unless the cache has it, and returns its path. One process of a host compiles."""
    command = _command()
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "chorus"
    folder = cache / f"torch-{torch.__version__}-{_digest(command)}"
    path = folder / f"{NAME}.so"
    if path.exists():
        return path
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not path.exists():
                _compile(command, path)
    except OSError as error:
        raise BuildFailed(f"{folder}: {error}: set XDG_CACHE_HOME to a folder that can be written") from error
    return path


def _compile(command: list[str], path: pathlib.Path) -> None:
    made = path.with_suffix(f".{os.getpid()}")
    ran = subprocess.run([*command, "-o", str(made)], capture_output=True, text=True)
    if ran.returncode != 0:
        missing = ""
        if "chorus/chorus.h" in ran.stderr and _headers() is None:
            missing = (
                f"chorus/chorus.h is neither in {', '.join(map(str, _folders()))} nor where the compiler looks: "
                "install libchorus-dev, or name its folder include in CPATH\n"
            )
        raise BuildFailed(
            f"the extension for torch.distributed cannot be compiled: {shlex.join(command)} ended with "
            f"{ran.returncode}:\n{ran.stderr[-4000:]}\n{missing}"
            "PyTorch's headers come with its wheels; in Debian with libtorch-dev and pybind11-dev. CXX names a compiler"
        )
    made.rename(path)


def _command() -> list[str]:
    compiler = shlex.split(os.environ.get("CXX") or "c++")
    if shutil.which(compiler[0]) is None:
        raise BuildFailed(f"{compiler[0]} was not found: install a C++ compiler, or set CXX")
    home = pathlib.Path(torch.__file__).parent
    includes = [home / "include", home / "include/torch/csrc/api/include", sysconfig.get_path("include")]
    if headers := _headers():
        includes.insert(0, headers)
    names = ("COMPILER_TYPE", "STDLIB", "BUILD_ABI")  # PyTorch's classes are those of modules with the same ones
    known = {name: getattr(torch._C, f"_PYBIND11_{name}", None) for name in names}
    found = library.load().path
    return [
        *compiler,
        f"-std={standard(torch.__version__)}",
        *("-O2", "-fPIC", "-shared", "-fvisibility=hidden"),
        f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}",
        *(f'-DPYBIND11_{name}="{value}"' for name, value in known.items() if value is not None),
        *(argument for path in includes for argument in ("-isystem", str(path))),
        str(SOURCE / "extension.cpp"),
        f"-L{home / 'lib'}",
        *("-ltorch_python", "-ltorch_cpu", "-ltorch", "-lc10"),
        found if "/" in found else f"-l:{found}",
    ]


def standard(version: str) -> str:
    """Returns the C++ that the headers of a version of PyTorch need: since 2.12 they refuse less than C++20."""
    major, minor = (int(part) for part in version.split(".")[:2])
    return "c++20" if (major, minor) >= (2, 12) else "c++17"


def _headers() -> pathlib.Path | None:
    """Returns the folder that has chorus/chorus.h; None where the compiler finds it by itself, or nobody does."""
    return next((folder for folder in _folders() if (folder / "chorus/chorus.h").exists()), None)


def _folders() -> list[pathlib.Path]:
    """Returns where chorus/chorus.h may be, beside where the compiler looks."""
    beside = pathlib.Path(library.load().path).parent
    source = pathlib.Path(__file__).resolve().parents[4]
    return [source / "library/include", beside / "include", beside.parent / "include"]


def _digest(command: list[str]) -> str:
    """Returns what changes with everything that the extension is made of."""
    digest = hashlib.sha256("\0".join([sys.version, torch.__version__, *command]).encode())
    headers = _headers()
    for path in sorted([*SOURCE.iterdir(), *((headers / "chorus").iterdir() if headers else ())]):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
