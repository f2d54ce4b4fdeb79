"""What the package declares of the C interface is what the headers declare."""

import ctypes
import ctypes.util
import pickle
import re
from typing import Any

import pytest

import chorus
from chorus.errors import from_problem
from chorus.native import abi
from chorus.native.library import Library, load
from services import ROOT

HEADERS = "\n".join(
    re.sub(r"//.*", "", path.read_text()) for path in sorted((ROOT / "library/include/chorus").glob("*.h"))
)
KINDS: dict[str, Any] = {
    "size_t": ctypes.c_size_t,
    "uint16_t": ctypes.c_uint16,
    "uint32_t": ctypes.c_uint32,
    "uint64_t": ctypes.c_uint64,
    "int32_t": ctypes.c_int32,
    "int64_t": ctypes.c_int64,
    "int": ctypes.c_int,
    "chorus_status_t": ctypes.c_int32,
    "chorus_dtype_t": ctypes.c_int32,
    "chorus_reduce_t": ctypes.c_int32,
    "void": None,
    "void*": ctypes.c_void_p,
    "char*": ctypes.c_char_p,
    "char**": ctypes.POINTER(ctypes.c_char_p),
}


def ctype_of(written: str) -> Any:
    """What ctypes has for a type of C, const left out: handles are void*, pointers to structs and numbers POINTER."""
    written = re.sub(r"\s+", "", re.sub(r"\bconst\b", "", written))
    if written in KINDS:
        return KINDS[written]
    inner = written.removesuffix("*")
    if (struct := abi.STRUCTS.get(inner.removesuffix("_t"))) is not None:
        return ctypes.POINTER(struct)
    if re.fullmatch(r"chorus_(coordinator|worker|group|request|memory|error)_t", inner):
        return ctypes.c_void_p
    return ctypes.POINTER(ctype_of(inner))


def enumeration(first: str) -> list[tuple[str, int]]:
    (body,) = re.findall(rf"enum \{{\s*({first} = 0.*?)\}}", HEADERS, re.S)
    return [(name.removeprefix("CHORUS_").lower(), int(number)) for name, number in re.findall(r"(\w+) = (\d+)", body)]


def test_structs_have_the_members_of_the_headers_in_their_order() -> None:
    found = re.findall(r"typedef struct (\w+) \{(.*?)\} \1_t;", HEADERS, re.S)
    assert {name for name, _ in found} == abi.STRUCTS.keys()
    for struct, body in found:
        members = []
        for kind, name, extent in re.findall(r"([\w\s*]+?)\b(\w+)(?:\[(\d+)\])?;", body):
            one = ctype_of(kind)
            members.append((name, one * int(extent) if extent else one))
        assert abi.STRUCTS[struct]._fields_ == members, struct


def test_functions_have_the_results_and_arguments_of_the_headers() -> None:
    found = re.findall(r"CHORUS_API ([\w\s*]+?)\b(chorus_\w+)\((.*?)\);", HEADERS, re.S)
    assert {name for _, name, _ in found} == abi.FUNCTIONS.keys()
    for result, name, arguments in found:
        kinds = [re.sub(r"\w+$", "", argument.strip()) for argument in arguments.split(",")]
        expected = tuple(ctype_of(kind) for kind in kinds) if arguments.strip() != "void" else ()
        declared_result, declared = abi.FUNCTIONS[name]
        assert declared_result == ctype_of(result), name
        # A string that is written to is no string of ctypes.
        assert declared == expected or name == "chorus_group_why_not_shared", name
        assert len(declared) == len(expected), name


def test_enumerations_are_those_of_the_headers() -> None:
    assert enumeration("CHORUS_F64") == [(name, number) for number, name in enumerate(abi.DTYPES)]
    assert enumeration("CHORUS_SUM") == [(name, number) for number, name in enumerate(abi.REDUCTIONS)]
    statuses = dict(enumeration("CHORUS_OK"))
    for name in ("OK", "NO_COORDINATOR", "NOT_ASSIGNED", "NO_NEW_EPOCH", "PENDING"):
        assert statuses[name.lower()] == getattr(abi, name), name


@pytest.mark.parametrize("name", [name for name, _ in enumeration("CHORUS_OK") if name not in ("ok", "pending")])
def test_every_status_has_an_exception(name: str) -> None:
    error = from_problem({"code": name, "detail": "it", "ranks": [1]})
    assert type(error) is getattr(chorus, "".join(part.capitalize() for part in name.split("_")))
    assert (error.code, error.ranks) == (name, [1])
    again = pickle.loads(pickle.dumps(error))  # from a rank's process
    assert (type(again), str(again), again.ranks) == (type(error), str(error), [1])


def test_exceptions_are_those_that_python_programs_expect() -> None:
    assert issubclass(chorus.BadArgument, ValueError) and issubclass(chorus.OutOfMemory, MemoryError)
    assert issubclass(chorus.DeadlineExceeded, TimeoutError) and issubclass(chorus.NotAssigned, TimeoutError)
    assert issubclass(chorus.PlanMismatch, chorus.Mismatch)


def test_the_version_of_the_library_is_compared(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    assert library.version == chorus.__version__
    assert library.has_feature("shared_memory") in (True, False) and not library.has_feature("teleport")
    loaded = ctypes.CDLL(library.path)
    monkeypatch.setattr(abi, "VERSION", (0, 99))
    with pytest.raises(chorus.LibraryNotFound, match=r"has version 0\.\d+\.\d+, expected 0\.99 or a later 0\.x"):
        Library(loaded, library.path)


def test_a_library_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHORUS_LIBRARY", "/nowhere/libchorus.so.0")
    with pytest.raises(chorus.LibraryNotFound, match=r"/nowhere/libchorus.so.0.*docs/guides/linking.md"):
        load()
    monkeypatch.setenv("CHORUS_LIBRARY", ctypes.util.find_library("c") or "libc.so.6")
    with pytest.raises(chorus.LibraryNotFound, match="chorus_version.*expected libchorus.so.0 of version 0.2"):
        load()
