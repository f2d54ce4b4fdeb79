"""`chorus.torch.Embedding`: rows that owners have, beside torch.nn.Embedding."""

import gc
import pathlib
import re
import signal
import threading
from typing import Any

import numpy
import pytest

import torch_ranks
from chorus import Client
from services import ROOT, Fleet, until

torch_ranks.require_torch()

import torch  # noqa: E402

import chorus.torch  # noqa: E402

ROWS = torch.tensor([[3, 1 << 39], [3, 0]])


def test_gradients_move_rows_as_those_of_torch_do(client: Client) -> None:
    made = {"optimizer": {"name": "sgd", "learning_rate": 0.5}, "initializer": {"name": "normal", "seed": 7}}
    lazy = {"shape": [1 << 40, 4], "lazy_rows": 100} | made
    remote = chorus.torch.Embedding(client.create_parameter("lazy", "all", **lazy))  # type: ignore[arg-type]
    first = remote(ROWS).detach()
    local = torch.nn.Embedding.from_pretrained(torch.stack([first[1, 1], first[0, 0], first[0, 1]]), freeze=False)
    optimizer = torch.optim.SGD(local.parameters(), lr=0.5)
    for _ in range(3):
        optimizer.zero_grad()
        for table, rows in ((remote, ROWS), (local, torch.tensor([[1, 2], [1, 0]]))):
            table(rows).square().sum().backward()
            table(rows[0]).sum().backward()  # a second look at some rows, of the same step
        optimizer.step()
        answer = remote.push()
        assert answer is not None and not answer.duplicate
    assert torch.equal(remote(ROWS), local(torch.tensor([[1, 2], [1, 0]])))
    untouched = client.parameter("lazy").pull_rows([1, 2])
    assert (untouched == client.create_parameter("lazy", "all", **lazy).pull_rows([1, 2])).all()  # type: ignore[arg-type]
    client.delete_parameter("lazy")


def test_what_has_no_gradient_is_not_pushed(client: Client) -> None:
    table = chorus.torch.Embedding(client.create_parameter("kept", "all", [10, 2], dtype="f64"))
    assert list(table.parameters()) == [] and "kept" in repr(table)
    with torch.no_grad():
        table(torch.arange(3))
    table(torch.arange(3))
    assert table.push() is None
    assert table(torch.empty(0, 5, dtype=torch.int64)).shape == (0, 5, 2)
    assert table(torch.tensor(9)).dtype == torch.float64
    table(torch.tensor(9)).sum().backward()
    assert table.push() is not None and table.push() is None
    assert table.parameter.pull().sum() == 2
    client.delete_parameter("kept")


def test_rows_that_are_pulled_before_a_push_get_their_gradients_after_it(client: Client) -> None:
    table = chorus.torch.Embedding(client.create_parameter("ahead", "all", [4, 1]))
    here, ahead = table(torch.tensor([0, 1])), table(torch.tensor([1, 2]))
    here.sum().backward()
    assert table.push() is not None
    ahead.sum().backward(retain_graph=True)
    ahead.sum().backward()
    assert table.push() is not None and table.push() is None
    assert table.parameter.pull().ravel().tolist() == [1, 3, 2, 0]
    client.delete_parameter("ahead")


def test_rows_without_a_backward_pass_are_let_go(client: Client) -> None:
    table = chorus.torch.Embedding(client.create_parameter("evaluated", "all", [4, 1]))

    def tensors() -> int:
        gc.collect()
        return sum(isinstance(one, torch.Tensor) for one in gc.get_objects())

    table(torch.tensor([0, 1]))
    before = tensors()
    for _ in range(10):
        table(torch.tensor([0, 1]))
    assert tensors() == before
    client.delete_parameter("evaluated")


def test_a_push_in_doubt_is_repeated_before_the_next_one() -> None:
    with Fleet(workers=("a",)) as fleet:
        table = chorus.torch.Embedding(fleet.client.create_parameter("doubted", "all", [10, 1]))
        owner = fleet.workers["a"].process
        table(torch.tensor(1)).sum().backward()
        owner.send_signal(signal.SIGSTOP)
        until(
            lambda: pathlib.Path(f"/proc/{owner.pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "T", "it stands"
        )
        with pytest.raises(chorus.NoAnswer):
            table.push(timeout=0.3)
        assert table.parameter.in_doubt
        owner.send_signal(signal.SIGCONT)
        table(torch.tensor(2)).sum().backward()
        table.push()
        assert table.parameter.sequence == 2 and table.parameter.pull()[:4].ravel().tolist() == [0, 1, 1, 0]


def test_gradients_of_a_push_that_was_refused_come_with_the_next(client: Client) -> None:
    table = chorus.torch.Embedding(client.create_parameter("refused", "all", [4, 1]))
    table(torch.tensor([0, 1])).sum().backward()
    client.delete_parameter("refused")
    for _ in range(2):
        with pytest.raises(chorus.UnknownParameter):
            table.push()
    client.create_parameter("refused", "all", [4, 1])
    table(torch.tensor([1, 2])).sum().backward()
    assert table.push() is not None and table.push() is None
    assert client.parameter("refused").pull().ravel().tolist() == [1, 2, 1, 0]
    client.delete_parameter("refused")


def test_a_push_that_has_no_room_is_repeated_as_it_was(client: Client) -> None:
    made: dict[str, Any] = {"shape": [100, 1], "lazy_rows": 1, "shards": 2}
    probe, together, apart = client.create_parameter("probe", "all", **made), [0], []
    probe.push_rows([0], numpy.ones((1, 1), "f4"))
    for row in range(1, 100):
        try:
            client.parameter("probe").push_rows([row], numpy.ones((1, 1), "f4"))
            apart.append(row)  # the other shard has had room
        except chorus.RowsExhausted:
            together.append(row)
        if apart and len(together) > 1:
            break
    client.delete_parameter("probe")
    rows = torch.tensor([*together[:2], apart[0]])
    table = chorus.torch.Embedding(client.create_parameter("narrow", "all", **made))
    table(rows).sum().backward()
    for _ in range(2):
        with pytest.raises(chorus.RowsExhausted):
            table.push()
        assert table.parameter.pull_rows(rows.sort()[0]).sum() == 1  # of the shard that has had room
        table(rows[2]).sum().backward()  # comes after it
    client.delete_parameter("narrow")


def test_threads_have_objects_of_their_own(client: Client) -> None:
    client.create_parameter("shared", "all", [4, 1])

    def pushes() -> None:
        table = chorus.torch.Embedding(client.parameter("shared"))
        for _ in range(20):
            table(torch.tensor([0, 3, 3])).sum().backward()
            table.push()

    threads = [threading.Thread(target=pushes) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert client.parameter("shared").pull().ravel().tolist() == [60, 0, 0, 120]
    client.delete_parameter("shared")


def test_parameters_that_are_no_tables_are_named(client: Client) -> None:
    for name, shape, dtype in (("flat", [4], "f32"), ("whole", [4, 1], "i32")):
        parameter = client.create_parameter(name, "all", shape, dtype=dtype)
        with pytest.raises(ValueError, match=f"'{name}' is {dtype} of shape"):
            chorus.torch.Embedding(parameter)
        client.delete_parameter(name)


def test_the_example_of_the_page_runs_as_written() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", (ROOT / "docs/guides/torch.md").read_text(), re.M | re.S)
    (block,) = (block for block in blocks if "Client(" in block)
    with Fleet() as fleet:
        fleet.client.create_group("g", ["a", "b"])
        names: dict[str, Any] = {}
        exec(block.replace("http://127.0.0.1:7070", fleet.coordinator.url), names)
        assert names["items"].parameter.sequence == 1
