"""Parameters: pushes that count once, pulls, rows and checkpoints."""

import pathlib
import threading
from typing import Any

import numpy
import pytest

import chorus
from chorus import Client
from services import Fleet


def test_pushes_are_added_and_pulled(client: Client) -> None:
    w = client.create_parameter("sums", "all", [2, 3])
    assert (w.dtype, w.shape, w.info.state, w.pull().tolist()) == ("f32", (2, 3), "ready", [[0, 0, 0], [0, 0, 0]])
    gradient = numpy.arange(6, dtype="f4").reshape(2, 3)
    answer = w.push(gradient)
    assert (answer.version, answer.next_sequence, answer.duplicate) == (1, 1, False)
    w.push(gradient)
    out = numpy.empty((2, 3), "f4")
    assert w.pull(out) is out
    assert (out == 2 * gradient).all() and w.version == 2
    assert w.push_pull(gradient).tolist() == (3 * gradient).tolist()
    w.set(gradient)
    assert w.pull().tolist() == gradient.tolist()
    assert w.sequence == 4
    client.delete_parameter("sums")
    with pytest.raises(chorus.UnknownParameter):
        client.parameter("sums")


def test_the_same_request_finds_the_parameter_and_another_one_does_not(client: Client) -> None:
    client.create_parameter("made", "all", [4])
    assert client.create_parameter("made", "all", [4]).info.epoch == 1
    with pytest.raises(chorus.AlreadyExists):
        client.create_parameter("made", "all", [5])
    assert "made" in [one.name for one in client.parameters()]
    client.delete_parameter("made")


@pytest.mark.parametrize("optimizer", ["sgd", "momentum", "nesterov", "adagrad", "adam", "adamw"])
def test_optimizers_run_where_the_values_are(client: Client, optimizer: str) -> None:
    name = f"optimizer-{optimizer}"
    settings = {"name": optimizer, "learning_rate": 0.5}
    w = client.create_parameter(name, "all", [2], optimizer=settings, initializer={"name": "constant", "value": 1})
    w.push(numpy.array([2, -2], "f4"))
    low, high = w.pull()
    assert low < 1 < high
    assert w.info.optimizer is not None and w.info.optimizer.learning_rate == 0.5
    client.delete_parameter(name)


def test_shapes_and_settings_may_be_those_of_numpy(client: Client) -> None:
    shape: Any = numpy.array([4, 2])
    optimizer = {"name": "sgd", "learning_rate": numpy.float32(0.5)}
    w = client.create_parameter("shaped", "all", shape, optimizer=optimizer)
    assert w.shape == (4, 2)
    plan = client.plan(ranks=numpy.int64(2), op="reduce_scatter", bytes=64, reproducible=numpy.bool_(True))
    assert plan.algorithm
    with pytest.raises(chorus.UnknownTensor):
        client.run("reduce_scatter", "all", "nothing", counts=range(2))
    client.delete_parameter("shaped")


def test_wrong_settings_are_named(client: Client) -> None:
    with pytest.raises(chorus.InvalidField) as caught:
        client.create_parameter("wrong", "all", [2], optimizer={"name": "adamm", "learning_rate": -1})
    assert caught.value.errors[0].pointer.startswith("/optimizer")
    with pytest.raises(chorus.UnknownGroup):
        client.create_parameter("wrong", "nobody", [2])


def test_gradients_that_do_not_fit_are_refused_and_take_no_number(client: Client) -> None:
    w = client.create_parameter("fit", "all", [4])
    with pytest.raises(ValueError, match=r"shape \(3,\), expected \(4,\)"):
        w.push(numpy.zeros(3, "f4"))
    with pytest.raises(chorus.ChorusError, match="i32"):
        w.push(numpy.zeros(4, "i4"))
    assert (w.sequence, w.in_doubt) == (0, False)
    assert w.push(numpy.ones(4, "f4")).version == 1
    client.delete_parameter("fit")


def test_bf16_parameters(client: Client) -> None:
    w = client.create_parameter("half", "all", [2], dtype="bf16")
    w.push(numpy.array([0x3FC0, 0x4000], "u2"))  # 1.5 and 2 as their bits
    w.push(numpy.array([1, 1], "f4"))
    assert w.pull().view("u2").tolist() == [0x4020, 0x4040]  # 2.5 and 3
    client.delete_parameter("half")


def test_a_refused_gradient_leaves_the_sequence_as_it_was(client: Client) -> None:
    w = client.create_parameter("finite", "all", [2], nonfinite="reject")
    with pytest.raises(chorus.NonFinite):
        w.push(numpy.array([numpy.nan, 1], "f4"))
    assert w.push(numpy.ones(2, "f4")).version == 1
    client.delete_parameter("finite")


def test_a_client_that_goes_on_and_one_that_begins_anew(client: Client) -> None:
    ones = numpy.ones(2, "f4")
    first = client.create_parameter("named", "all", [2], client="trainer", incarnation=1)
    first.push(ones)
    goes_on = client.parameter("named", client="trainer", incarnation=1, sequence=1)
    assert goes_on.push(ones).version == 2
    assert client.parameter("named", client="trainer", incarnation=1).push(ones).duplicate
    anew = client.parameter("named", client="trainer")  # its incarnation is the time: a higher one
    assert not anew.push(ones).duplicate
    with pytest.raises(chorus.EpochFenced):
        goes_on.push(ones)
    assert client.parameter("named").pull().tolist() == [3, 3]
    client.delete_parameter("named")


def test_a_pull_may_wait_for_a_version_and_be_skipped_if_nothing_changed(client: Client) -> None:
    w = client.create_parameter("awaited", "all", [2])
    reader = client.parameter("awaited")
    pulled: list[list[float]] = []
    waiting = threading.Thread(target=lambda: pulled.append(reader.pull(min_version=1).tolist()))
    waiting.start()
    w.push(numpy.ones(2, "f4"))
    waiting.join()
    assert pulled == [[1, 1]]
    assert reader.pull(if_changed=True) is None
    w.push(numpy.ones(2, "f4"))
    assert reader.pull(if_changed=True).tolist() == [2, 2]
    with pytest.raises(TimeoutError):
        reader.pull(min_version=9, timeout=0.3)
    client.delete_parameter("awaited")


def test_bulk_synchronous_clients(client: Client) -> None:
    made = {"staleness": 0, "reduce": "avg", "clients": ["one", "two"]}
    w = client.create_parameter("rounds", "all", [1], client="one", **made)  # type: ignore[arg-type]
    two = client.parameter("rounds", client="two")
    other = threading.Thread(target=lambda: two.push(numpy.array([3], "f4"), clock=0))
    other.start()
    w.push(numpy.array([1], "f4"), clock=0)
    other.join()
    assert w.pull(clock=1).tolist() == [2]
    client.delete_parameter("rounds")


def test_rows_in_any_order(client: Client) -> None:
    table = client.create_parameter("rows", "all", [1000, 2])
    table.push_rows([1, 3], numpy.array([[1, 2], [3, 4]], "f4"))
    assert table.pull_rows(range(4)).tolist() == [[0, 0], [1, 2], [0, 0], [3, 4]]
    table.push_rows(numpy.array([3, 1, 3], "i8"), numpy.array([[1, 1], [10, 10], [2, 2]], "f4"))
    assert table.pull_rows(numpy.array([3, 1, 3], "u8")).tolist() == [[6, 7], [11, 12], [6, 7]]
    out = numpy.empty((2, 2), "f4")
    assert table.pull_rows((1, 3), out) is out and out.tolist() == [[11, 12], [6, 7]]
    assert table.pull_rows([3, 1], out).tolist() == [[6, 7], [11, 12]]
    assert table.pull_rows([]).shape == (0, 2)
    with pytest.raises(chorus.InvalidField, match="1000"):
        table.pull_rows([1000])
    for wrong in (-1, 1 << 64):
        with pytest.raises(ValueError, match=f"a row has the number {wrong}, expected 0 to 18446744073709551615"):
            table.push_rows([wrong], numpy.zeros((1, 2), "f4"))
    with pytest.raises(ValueError, match=r"expected \(2, 2\)"):
        table.push_rows([0, 1], numpy.zeros((1, 2), "f4"))
    client.delete_parameter("rows")


def test_lazy_rows_of_a_table_without_end(client: Client) -> None:
    table = client.create_parameter("lazy", "all", [1 << 40, 4], lazy_rows=2, optimizer="adagrad")
    table.push_rows([7, 1 << 39], numpy.ones((2, 4), "f4"))
    assert (table.pull_rows([7, 8]) != 0).any(axis=1).tolist() == [True, False]
    rows = [row for row in range(100, 110)]
    with pytest.raises(chorus.RowsExhausted):
        table.push_rows(rows, numpy.ones((10, 4), "f4"))
    assert table.in_doubt  # for a shard that has room it would be a repetition
    with pytest.raises(chorus.PushInDoubt):
        table.push_rows([7], numpy.ones((1, 4), "f4"))
    assert not client.parameter("lazy").push_rows([7], numpy.ones((1, 4), "f4")).duplicate
    client.delete_parameter("lazy")
    narrow = client.create_parameter("narrow", "all", [1 << 40, 4], lazy_rows=2, shards=1)
    with pytest.raises(chorus.RowsExhausted):
        narrow.push_rows(rows, numpy.ones((10, 4), "f4"))
    assert not narrow.push_rows([7], numpy.ones((1, 4), "f4")).duplicate
    client.delete_parameter("narrow")


def test_checkpoints_begin_where_they_were_written(tmp_path: pathlib.Path) -> None:
    with Fleet(worker_flags=["--checkpoint-directory", str(tmp_path)]) as fleet:
        client = fleet.client
        w = client.create_parameter("w", "all", [4], client="trainer", incarnation=1)
        w.push(numpy.arange(4, dtype="f4"))
        written = client.checkpoint("nightly", ["w"], keep=2)
        assert (written.parameters, written.unaligned) == (1, [])
        w.push(numpy.ones(4, "f4"))
        client.delete_parameter("w")
        w = client.create_parameter("w", "all", [4], checkpoint="nightly", client="trainer", incarnation=1)
        assert w.pull().tolist() == [0, 1, 2, 3]
        assert w.push(numpy.ones(4, "f4")).duplicate  # the checkpoint has the client's number
        w.push(numpy.ones(4, "f4"))
        assert w.pull().tolist() == [1, 2, 3, 4]
        with pytest.raises(chorus.UnknownParameter):
            client.checkpoint("nightly", ["other"])
