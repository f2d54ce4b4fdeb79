"""Tensors go to a worker and come back with the same bits."""

import array
import ctypes
import sys
from typing import Any

import numpy
import pytest

import chorus
from chorus import RemoteWorker, dlpack
from chorus.buffers import to_send

NUMPY = ["f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1"]


def every_bit_pattern(dtype: str, count: int = 4096) -> numpy.ndarray[Any, Any]:
    raw = numpy.random.default_rng(7).integers(0, 256, count * numpy.dtype(dtype).itemsize, "u1")
    return raw.view(dtype)


@pytest.mark.parametrize("dtype", NUMPY)
def test_every_dtype_keeps_its_bits(a: RemoteWorker, dtype: str) -> None:
    sent = every_bit_pattern(dtype).reshape(64, 64)
    info = a.put(f"dtypes/{dtype}", sent)
    assert (info.shape, info.bytes) == ([64, 64], sent.nbytes)
    got = a.get(f"dtypes/{dtype}")
    assert (got.dtype, got.shape, got.tobytes()) == (sent.dtype, sent.shape, sent.tobytes())
    out = numpy.empty_like(sent)
    assert a.get(f"dtypes/{dtype}", out) is out
    assert out.tobytes() == sent.tobytes()


def test_bf16_as_its_bits(a: RemoteWorker) -> None:
    bits = every_bit_pattern("u2")
    assert a.put("bf16", bits, dtype="bf16").dtype == "bf16"
    assert a.get("bf16", numpy.empty(4096, "u2")).tobytes() == bits.tobytes()
    assert a.get("bf16").view("u2").tobytes() == bits.tobytes()  # uint16, or ml_dtypes' bfloat16


def test_bf16_sums_as_bf16(client: chorus.Client, a: RemoteWorker, b: RemoteWorker) -> None:
    one_and_a_half, two = numpy.array([0x3FC0], "u2"), numpy.array([0x4000], "u2")
    a.put("bf16/sum", one_and_a_half, dtype="bf16")
    b.put("bf16/sum", two, dtype="bf16")
    client.run("all_reduce", "all", "bf16/sum")
    assert a.get("bf16/sum").view("u2").tolist() == [0x4060]  # 3.5


@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (3, 0), (1,), (2, 3, 4, 5)])
def test_every_shape(a: RemoteWorker, shape: tuple[int, ...]) -> None:
    sent = numpy.arange(int(numpy.prod(shape)), dtype="f4").reshape(shape)
    assert a.put("shape", sent).shape == list(shape)
    got = a.get("shape")
    assert got.shape == shape and got.tobytes() == sent.tobytes()
    assert a.get("shape", numpy.empty(shape, "f4")).shape == shape


def test_arrays_that_are_not_contiguous_are_sent_in_order(a: RemoteWorker) -> None:
    whole = numpy.arange(24, dtype="i4").reshape(4, 6)
    for sent in (
        whole[:, ::2],
        whole.T,
        numpy.asfortranarray(whole),
        whole[::-1],
        numpy.broadcast_to(whole[0], (3, 6)),
    ):
        a.put("strided", sent)
        assert a.get("strided").tolist() == sent.tolist()


def test_big_endian_arrays_keep_their_values(a: RemoteWorker) -> None:
    a.put("endian", numpy.array([1.5, -2], ">f4"))
    assert a.get("endian").tolist() == [1.5, -2]


def test_read_only_arrays_are_sent_and_not_read_into(a: RemoteWorker) -> None:
    sent = numpy.arange(5, dtype="f4")
    sent.flags.writeable = False
    a.put("read_only", sent)
    with pytest.raises(ValueError, match="read-only"):
        a.get("read_only", sent)
    assert a.put("bytes", b"abc").dtype == "u8"
    with pytest.raises(ValueError, match="read-only"):
        a.get("bytes", b"abc")


def test_what_does_not_fit_is_refused_before_it_is_written(a: RemoteWorker) -> None:
    a.put("fit", numpy.arange(6, dtype="f4"))
    with pytest.raises(TypeError, match="elements of f64, expected f32"):
        a.get("fit", numpy.empty(6, "f8"))
    with pytest.raises(ValueError, match=r"shape \(5,\), expected \(6,\)"):
        a.get("fit", numpy.empty(5, "f4"))
    with pytest.raises(ValueError, match="not contiguous"):
        a.get("fit", numpy.empty((6, 2), "f4")[:, 0])
    assert a.get("fit").tolist() == [0, 1, 2, 3, 4, 5]  # the connection is as good as before


@pytest.mark.parametrize("wrong", [numpy.array([True]), numpy.array([1j]), numpy.array(["x"]), numpy.array([object()])])
def test_elements_without_a_dtype_are_named(a: RemoteWorker, wrong: Any) -> None:
    with pytest.raises(TypeError, match="have no dtype here: expected one of f64 f32 f16 bf16"):
        a.put("wrong", wrong)
    with pytest.raises(chorus.UnknownTensor):
        a.get("wrong")


def test_what_is_no_array_is_named(a: RemoteWorker) -> None:
    with pytest.raises(TypeError, match="list: expected a numpy array, a buffer"):
        a.put("wrong", [1, 2, 3])
    with pytest.raises(TypeError, match="dtype 'f8': expected one of"):
        a.put("wrong", numpy.zeros(1), dtype="f8")


@pytest.mark.parametrize("dtype", ["bf16", "i32", "u32", "f64"])
def test_a_dtype_that_an_array_contradicts_is_refused(a: RemoteWorker, dtype: str) -> None:
    with pytest.raises(TypeError, match=f"elements of f32 cannot be meant as {dtype}"):
        a.put("meant", numpy.zeros(1, "f4"), dtype=dtype)
    with pytest.raises(TypeError, match=f"elements of f32 cannot be meant as {dtype}"):
        a.put("meant", array.array("f", [0]), dtype=dtype)


@pytest.mark.parametrize(
    "array_of, dtype",
    [
        (lambda: numpy.array([0x3C00], "u2"), "f16"),
        (lambda: array.array("H", [0x3C00]), "f16"),
        (lambda: numpy.array([0x3C00], "u2"), "bf16"),
        (lambda: numpy.array([True, False]), "u8"),
        (lambda: numpy.array([b"ab"], "V2"), "bf16"),
        (lambda: numpy.array(["2026-01-01"], "M8[s]"), "i64"),
        (lambda: memoryview(b"\xff"), "i8"),
    ],
)
def test_a_dtype_says_what_an_array_cannot(a: RemoteWorker, array_of: Any, dtype: str) -> None:
    sent = array_of()
    assert a.put("meant", sent, dtype=dtype).dtype == dtype
    assert a.get("meant").tobytes() == sent.tobytes()


@pytest.mark.parametrize("wrong", [numpy.array([object()]), numpy.array([1j], "c8"), numpy.array(["a", "b"])])
def test_what_is_no_number_is_none_by_a_dtype_either(a: RemoteWorker, wrong: Any) -> None:
    for dtype in ("f64", "f32", "i64", "u64", "u32"):
        with pytest.raises(TypeError, match="no dtype here"):
            a.put("meant", wrong, dtype=dtype)


def test_anything_with_a_buffer(a: RemoteWorker) -> None:
    numbers = (ctypes.c_int32 * 3)(1, 2, 3)
    for sent, dtype in (
        (array.array("d", [1, 2, 3]), "f64"),
        (bytearray(b"\1\2\3"), "u8"),
        (memoryview(array.array("h", [1, 2, 3])), "i16"),
        (numbers, "i32"),
        (array.array("l", [1, 2, 3]), "i64"),
    ):
        assert a.put("buffer", sent).dtype == dtype
        assert a.get("buffer").tolist() == [1, 2, 3]
    out = array.array("l", [0, 0, 0])
    a.get("buffer", out)
    assert out.tolist() == [1, 2, 3]
    a.put("buffer", memoryview(array.array("h", range(6)))[::2])
    assert a.get("buffer").tolist() == [0, 2, 4]


class OnlyInterface:
    """An array that is none of numpy's, and says as numpy does where its memory is."""

    def __init__(self, inner: Any) -> None:
        self.inner, self.dtype = inner, inner.dtype

    @property
    def __array_interface__(self) -> Any:
        return self.inner.__array_interface__

    def tobytes(self) -> bytes:
        return bytes(self.inner.tobytes())


class GivesCopies:
    """What numpy makes arrays of: each is a new one."""

    def __array__(self, *_: Any) -> Any:
        return numpy.zeros(())


def test_subclasses_and_interfaces_of_numpy_are_their_memory(a: RemoteWorker) -> None:
    a.put("plain", numpy.arange(6, dtype="f4").reshape(2, 3))
    whole = numpy.zeros((2, 3), "f4")
    for out in (whole.view(numpy.matrix), whole.view(numpy.recarray), whole.view(numpy.ma.MaskedArray)):
        whole[:] = 0
        assert a.get("plain", out) is out and whole.tolist() == [[0, 1, 2], [3, 4, 5]]
    whole[:] = 0
    a.get("plain", OnlyInterface(whole))
    assert whole.tolist() == [[0, 1, 2], [3, 4, 5]]
    with pytest.raises(TypeError, match="elements of the array are masked: pass its .data"):
        a.put("plain", numpy.ma.masked_greater(whole, 3))  # type: ignore[no-untyped-call]


def test_what_is_a_copy_is_not_read_into(a: RemoteWorker) -> None:
    a.put("scalar", numpy.float64(3))
    assert a.get("scalar").tolist() == 3
    with pytest.raises(ValueError, match="float64: only a copy of it .* pass an array, of shape"):
        a.get("scalar", numpy.float64(0))
    with pytest.raises(ValueError, match="read-only"):
        a.get("scalar", memoryview(numpy.float64(0)))  # type: ignore[arg-type]
    for out in (0.0, [0.0], GivesCopies()):
        with pytest.raises(TypeError, match=f"{type(out).__name__}: expected a numpy array"):
            a.get("scalar", out)
    own = numpy.array(0.0)
    assert a.get("scalar", own) is own and own.tolist() == 3


class OnlyDlpack:
    """An array that says no more than DLPack does, as those of other libraries."""

    def __init__(self, inner: Any, device: tuple[int, int] = (1, 0)) -> None:
        self.inner, self.device = inner, device

    def __dlpack__(self) -> Any:
        return self.inner.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device


@pytest.mark.parametrize("dtype", NUMPY)
def test_dlpack_lends_its_memory(a: RemoteWorker, dtype: str) -> None:
    inner = every_bit_pattern(dtype).reshape(64, 64)
    sent = OnlyDlpack(inner)
    content = to_send(sent)
    inner[0, 0] = 1
    assert bytes(content.view) == inner.tobytes()  # the same memory
    a.put("dlpack", sent)
    assert a.get("dlpack").tobytes() == inner.tobytes()
    out = numpy.zeros_like(inner)
    a.get("dlpack", OnlyDlpack(out))
    assert out.tobytes() == inner.tobytes()


def test_dlpack_memory_lives_as_long_as_it_is_used_and_no_longer() -> None:
    inner = numpy.arange(4, dtype="f4")
    before = sys.getrefcount(inner)
    content = to_send(OnlyDlpack(inner))
    assert sys.getrefcount(inner) > before
    del content
    assert sys.getrefcount(inner) == before


class Versioned:
    """A tensor that is exported as DLPack 1 has it."""

    def __init__(self, inner: Any, flags: int) -> None:
        shape = (ctypes.c_int64 * 1)(inner.size)
        self.tensor = dlpack._VersionedTensor(1, 0, None, None, flags)
        self.tensor.tensor = dlpack._Tensor(inner.ctypes.data, 1, 0, 1, 2, 32, 1, shape, None, 0)
        self.kept = inner, shape

    def __dlpack__(self, max_version: tuple[int, int] | None = None) -> Any:
        assert max_version == (1, 0)
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self.tensor), b"dltensor_versioned", None)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def test_dlpack_says_what_is_read_only(a: RemoteWorker) -> None:
    inner = numpy.arange(4, dtype="f4")
    a.put("dlpack", Versioned(inner, dlpack.READ_ONLY))
    inner[:] = 0
    with pytest.raises(ValueError, match="read-only"):
        a.get("dlpack", Versioned(inner, dlpack.READ_ONLY))
    with pytest.raises(ValueError, match="read-only"):
        a.get("dlpack", Versioned(inner, dlpack.COPIED))
    a.get("dlpack", Versioned(inner, 0))
    assert inner.tolist() == [0, 1, 2, 3]


def test_dlpack_elsewhere_or_not_contiguous_is_refused(a: RemoteWorker) -> None:
    with pytest.raises(TypeError, match="the tensor is on rocm:1, expected the CPU or cuda"):
        a.put("dlpack", OnlyDlpack(numpy.zeros(3), (10, 1)))
    with pytest.raises(ValueError, match="not contiguous"):
        a.put("dlpack", OnlyDlpack(numpy.zeros((3, 3))[:, 0]))
    with pytest.raises(TypeError, match="no dtype here"):
        a.put("dlpack", OnlyDlpack(numpy.zeros(3, "c16")))


def test_torch_tensors(a: RemoteWorker) -> None:
    torch = pytest.importorskip("torch")
    for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.uint8):
        sent = torch.arange(12).to(dtype).reshape(3, 4)
        a.put("torch", sent)
        out = torch.empty(3, 4, dtype=dtype)
        a.get("torch", out)
        assert torch.equal(out, sent)
    negative = torch.tensor([1 + 2j]).conj().imag  # -2, by a bit of the tensor
    a.put("torch", negative)
    assert a.get("torch").tolist() == [-2]
    with pytest.raises(ValueError, match="negative of its memory"):
        a.get("torch", negative)
    a.put("torch", torch.ones(2, requires_grad=True))
    a.put("torch", torch.arange(6).reshape(2, 3).T)
    assert a.get("torch").tolist() == [[0, 3], [1, 4], [2, 5]]


def test_versions_lists_and_deletion(a: RemoteWorker) -> None:
    for version in (1, 2, 3):
        assert a.put("list/one", numpy.zeros(2, "i1")).version == version
    a.put("list/other", numpy.zeros((2, 2), "i1"))
    assert [one.name for one in a.tensors("list/")] == ["list/one", "list/other"]
    a.delete("list/one")
    assert [one.shape for one in a.tensors("list/")] == [[2, 2]]
    with pytest.raises(chorus.UnknownTensor, match="list/one"):
        a.delete("list/one")
    with pytest.raises(chorus.BadRequest, match="tensor names are"):
        a.put("with space", numpy.zeros(1))
    with pytest.raises(ValueError, match="'..' is no name"):
        a.put("..", numpy.zeros(1))
