"""Messages between two workers of this process."""

import threading
import weakref
from typing import Any

import numpy
import pytest

import chorus
from members import Pair

Group = chorus.Group


def test_messages_are_sent_and_received_in_each_form(pair: Pair) -> None:
    def story(group: Group, rank: int) -> None:
        other = 1 - rank
        own, expected = numpy.arange(4, dtype="f4") + 10 * rank, numpy.arange(4, dtype="f4") + 10 * other
        out = numpy.zeros(6, "f4")
        if rank == 0:
            group.send(own, other, tag=3)
        got = group.recv(out, tag=3)
        if rank == 1:
            group.send(own, other, tag=3)
        assert got.tensor is out and out.tolist() == [*expected, 0, 0]
        assert (got.source, got.bytes, got.elements) == (other, 16, 4)
        assert repr(got) == f"Received(16 bytes from rank {other})"

        got = group.sendrecv(own, other, out, other)
        assert (got.source, got.elements) == (other, 4)

        out[:] = 0
        receiving = group.recv(out, other, async_op=True)
        sending = group.send(own, other, async_op=True)
        assert sending.wait() is None
        got = receiving.wait()
        assert got.source == other and out[:4].tolist() == expected.tolist()

    pair.both(story)


@pytest.mark.parametrize("elements", [0, 1, 1000, 1_000_000])
def test_messages_have_any_size(pair: Pair, elements: int) -> None:
    def story(group: Group, rank: int) -> Any:
        out = numpy.zeros(elements, "i8")
        got = group.sendrecv(numpy.arange(elements) + rank, 1 - rank, out, 1 - rank)
        assert got.elements == elements and (out == numpy.arange(elements) + 1 - rank).all()

    pair.both(story)


def test_what_cannot_be_is_refused(pair: Pair) -> None:
    group = pair.groups[0]
    x = numpy.zeros(4)
    with pytest.raises(chorus.BadArgument, match="rank 2 in a group of 2"):
        group.send(x, 2)
    with pytest.raises(ValueError, match="tag is 2147483648"):
        group.send(x, 1, tag=1 << 31)
    with pytest.raises(ValueError, match="tag is -1, expected 0 to 2147483647$"):
        group.send(x, 1, tag=-1)
    with pytest.raises(ValueError, match="source is -1"):
        group.recv(x, -1)
    with pytest.raises(TypeError, match="peer is 'b'"):
        group.send(x, "b")  # type: ignore[arg-type]
    with pytest.raises(ValueError):
        group.recv(numpy.zeros((4, 4))[:, 0], 1)
    with pytest.raises(chorus.DeadlineExceeded, match="no message with tag 9 from any rank"):
        group.recv(x, tag=9, timeout=0.02)
    pair.both(lambda group, rank: group.barrier())


def test_a_receive_is_cancelled_and_the_next_one_gets_the_message(pair: Pair) -> None:
    def story(group: Group, rank: int) -> None:
        if rank == 0:
            group.barrier()
            group.send(numpy.arange(3.0), 1)
            return
        first, second = numpy.zeros(3), numpy.zeros(3)
        work = group.recv(first, async_op=True)
        assert work.cancel() and work.cancel()
        with pytest.raises(chorus.Cancelled, match="the receive was cancelled"):
            work.wait()
        assert work.cancel()
        barrier = group.barrier(async_op=True)
        assert not barrier.cancel()
        barrier.wait()
        late = group.recv(second, 0, async_op=True)
        assert late.wait().source == 0
        assert not late.cancel()
        assert second.tolist() == [0, 1, 2] and not first.any()

    pair.both(story)


def test_a_thread_that_waits_is_woken_by_a_cancel(pair: Pair) -> None:
    work = pair.groups[0].recv(numpy.zeros(3), 1, async_op=True)
    canceller = threading.Thread(target=work.cancel)
    canceller.start()
    with pytest.raises(chorus.Cancelled):
        work.wait(20)
    canceller.join()
    pair.both(lambda group, rank: group.barrier())


def test_a_member_sends_itself_messages(pair: Pair) -> None:
    def story(group: Group, rank: int) -> None:
        out = numpy.zeros(3)
        group.send(numpy.arange(3.0) + rank, rank)
        assert group.recv(out).source == rank and out.tolist() == [rank, rank + 1, rank + 2]
        large = numpy.arange(100_000.0)
        into = numpy.zeros(100_000)
        assert group.sendrecv(large, rank, into, rank).bytes == 800_000 and (into == large).all()

    pair.both(story)


def test_arrays_of_sends_that_nobody_waits_for_are_let_go_while_a_receive_waits(pair: Pair) -> None:
    sender, receiver = pair.groups
    listening = sender.recv(numpy.zeros(1), 1, tag=9, async_op=True)
    sent: list[weakref.ref[Any]] = []
    for number in range(50):
        array, out = numpy.full(100, number), numpy.zeros(100, int)
        sent.append(weakref.ref(array))
        sender.send(array, 1, async_op=True)
        receiver.recv(out, 0)
        assert (out == number).all()
    del array
    assert sum(one() is not None for one in sent) < 10
    assert listening.cancel()


def test_a_message_that_does_not_fit_ends_the_epoch_on_both_members(own_pair: Pair) -> None:
    def story(group: Group, rank: int) -> None:
        with pytest.raises(chorus.Mismatch, match="receives at most 8") as failed:
            if rank == 0:
                group.send(numpy.zeros(100_000), 1)
            else:
                group.recv(numpy.zeros(1), 0)
        assert failed.value.ranks == [0, 1]
        with pytest.raises(chorus.ChorusError):
            group.barrier()

    own_pair.both(story)
