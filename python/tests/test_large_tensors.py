"""Memory that large tensors take in the client: none beyond the array's own."""

import os
import resource
import tracemalloc

import numpy
import pytest

from chorus import Client, RemoteWorker

MIB = 1 << 20


def peak_rss() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def test_a_tensor_is_sent_and_read_without_a_copy(a: RemoteWorker) -> None:
    sent = numpy.arange(32 * MIB, dtype="f4")  # 128 MiB
    out = numpy.empty_like(sent)
    out.fill(1)
    tracemalloc.start()
    rss = peak_rss()
    try:
        a.put("large", sent)
        a.get("large", out)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 * MIB
    assert peak_rss() - rss < 16 * MIB
    assert numpy.array_equal(out, sent)
    a.delete("large")


def test_a_new_array_is_the_only_copy(a: RemoteWorker) -> None:
    a.put("large", numpy.ones(128 * MIB, "u1"))
    tracemalloc.start()
    try:
        got = a.get("large")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert got.sum(dtype="i8") == 128 * MIB
    assert 128 * MIB <= peak < 132 * MIB
    a.delete("large")


def test_an_array_that_is_not_contiguous_is_copied_once(a: RemoteWorker) -> None:
    sent = numpy.ones((64 * MIB, 2), "u1")[:, 0]
    tracemalloc.start()
    try:
        a.put("large", sent)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert 64 * MIB <= peak < 68 * MIB
    a.delete("large")


def test_parameters_are_pushed_and_pulled_without_a_copy(client: Client) -> None:
    gradient = numpy.ones(16 * MIB, "f4")
    values = numpy.zeros_like(gradient)
    parameter = client.create_parameter("large", "all", gradient.shape)
    tracemalloc.start()
    try:
        parameter.push(gradient)
        parameter.pull(values)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert numpy.array_equal(values, gradient)
    assert peak < 4 * MIB
    client.delete_parameter("large")


@pytest.mark.skipif(not os.environ.get("CHORUS_TEST_LARGE"), reason="takes 6 GiB: CHORUS_TEST_LARGE=1 asks for it")
def test_more_than_two_gibibytes(a: RemoteWorker) -> None:
    sent = numpy.zeros((1 << 31) + 5, "u1")
    sent[-5:] = [1, 2, 3, 4, 5]
    a.put("huge", sent)
    got = a.get("huge")
    assert got.nbytes == sent.nbytes and got[-6:].tolist() == [0, 1, 2, 3, 4, 5]
    a.delete("huge")
