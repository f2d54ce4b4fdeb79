"""The package without numpy: buffers of the standard library."""

import os
import subprocess
import sys

from chorus.native.library import Library
from services import ROOT, Fleet

STORY = """
import array, sys
sys.modules["numpy"] = None  # importing it fails
import chorus
client = chorus.Client(sys.argv[1])
a, b = client.worker("a"), client.worker("b")
for worker in (a, b):
    worker.put("plain", array.array("f", [1, 2, 3]))
client.run("all_reduce", "all", "plain")
got = a.get("plain")
assert isinstance(got, memoryview) and got.tolist() == [2, 4, 6], got
a.put("plain", memoryview(array.array("i", range(6))).cast("B").cast("i", [2, 3]))
assert a.get("plain").tolist() == [[0, 1, 2], [3, 4, 5]]
out = array.array("i", bytes(24))
a.get("plain", out)
assert out.tolist() == [0, 1, 2, 3, 4, 5]
a.put("plain", b"")
assert a.get("plain").tolist() == []
a.put("plain", array.array("H", [0x3fc0]), dtype="bf16")
assert a.get("plain").tolist() == [0x3fc0]
w = client.create_parameter("plain", "all", [4, 2])
w.push(array.array("f", range(8)))
w.push_rows([1, 3], array.array("f", [1, 1, 2, 2]))
assert w.pull_rows([1, 3]).tolist() == [[3, 4], [8, 9]]
try:
    w.pull_rows([3, 1])
except ValueError as error:
    assert "ascending" in str(error)
else:
    raise AssertionError("rows in another order need numpy")
client.delete_parameter("plain")
"""


MEMBERS = """
import array, sys, threading
sys.modules["numpy"] = None
import chorus
client = chorus.Client(sys.argv[1])
workers = [chorus.Worker(sys.argv[1], f"plain.{rank}") for rank in range(2)]
ids = [worker.id for worker in workers]
client.wait_for_workers(ids)
client.create_group("plain", ids, order="listed")
groups = [worker.join("plain") for worker in workers]

def story(rank):
    group, plain = groups[rank], array.array("i", [1, 2])
    group.all_reduce(plain)
    assert plain.tolist() == [2, 4]
    whole = group.all_gather(memoryview(plain).cast("B").cast("i", [1, 2]))
    assert whole.tolist() == [[2, 4], [2, 4]], whole
    own = workers[rank].empty((1, 2), "i32")
    own[0, 1] = own[0, 0] = 1
    assert group.all_reduce(own).tolist() == [[2, 2]]
    done.append(rank)

done = []
threads = [threading.Thread(target=story, args=[rank]) for rank in range(2)]
for thread in threads: thread.start()
for thread in threads: thread.join()
for worker in workers: worker.close()
assert sorted(done) == [0, 1]
"""


def test_members_without_numpy(library: Library, bare: Fleet) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", MEMBERS, bare.coordinator.url],
        env=os.environ | {"PYTHONPATH": str(ROOT / "python/src")},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr


def test_a_story_without_numpy(fleet: Fleet) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", STORY, fleet.coordinator.url],
        env={"PYTHONPATH": str(ROOT / "python/src"), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
