"""Puts what the library is made of into the package, where it is built; without it the wheel is pure.

libchorus.so.0 and chorus-coordinator are taken from ../build/release, or from where CHORUS_LIBRARY and CHORUS_BIN say.
pyproject.toml has the rest.
"""

import os
import pathlib
import shutil
import subprocess

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py
from wheel.bdist_wheel import bdist_wheel

ROOT = pathlib.Path(__file__).resolve().parents[1]
LIBRARY = pathlib.Path(os.environ.get("CHORUS_LIBRARY") or ROOT / "build/release/library/libchorus.so.0")
BIN = pathlib.Path(os.environ.get("CHORUS_BIN") or ROOT / "build/release/bin")
HEADERS = ROOT / "library/include/chorus"  # for chorus.torch, which is compiled where it is used


class WithLibrary(build_py):
    def run(self):
        super().run()
        if not LIBRARY.is_file() or getattr(self, "editable_mode", False):
            return
        package = pathlib.Path(self.build_lib, "chorus")
        for source, folder in ((LIBRARY, "lib"), (BIN / "chorus-coordinator", "bin")):
            (package / folder).mkdir(exist_ok=True)
            copied = shutil.copy(source, package / folder)
            if shutil.which("strip"):
                subprocess.run(["strip", "--strip-unneeded", copied], check=True)
        shutil.copytree(HEADERS, package / "include/chorus", dirs_exist_ok=True)


class OfAProcessor(Distribution):
    def has_ext_modules(self):
        return LIBRARY.is_file()


class ForAnyPython(bdist_wheel):
    def get_tag(self):
        return ("py3", "none", super().get_tag()[2])  # nothing is compiled against the interpreter


setup(cmdclass={"build_py": WithLibrary, "bdist_wheel": ForAnyPython}, distclass=OfAProcessor)
