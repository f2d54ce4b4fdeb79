"""Problems of services are exceptions of their own."""

import copy
import pathlib
import pickle
import re
import subprocess
import sys
from typing import Any

import numpy
import pytest

import chorus
from chorus import Client, RemoteWorker
from chorus.errors import from_answer, from_problem

PYTHON = pathlib.Path(__file__).resolve().parents[1]
CATALOGUE = re.findall(r"^\| `(\w+)` \| (\d+) ", (PYTHON.parent / "docs/reference/problems.md").read_text(), re.M)


def test_exceptions_and_messages_are_those_of_the_documentation() -> None:
    made = subprocess.run([sys.executable, PYTHON / "tools/generate.py", "--check"], capture_output=True, text=True)
    assert made.returncode == 0, made.stdout


@pytest.mark.parametrize("code, status", CATALOGUE)
def test_every_code_has_an_exception(code: str, status: str) -> None:
    error = from_problem({"code": code, "status": int(status), "detail": "it", "ranks": [1], "retryable": True})
    name = "".join(part.capitalize() for part in code.split("_"))
    assert type(error) is getattr(chorus, name)
    assert isinstance(error, chorus.ChorusError) and isinstance(error, chorus.NotFound) == (status == "404")
    assert (error.code, error.status, error.ranks, error.retryable) == (code, int(status), [1], True)
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):  # across processes of a pool
        assert (type(again), str(again), again.ranks) == (type(error), str(error), [1])


def test_a_code_of_a_later_release_is_an_error_all_the_same() -> None:
    error = from_problem({"code": "from_the_future", "status": 418, "title": "New", "detail": "it"})
    assert (type(error), error.code, str(error)) == (chorus.ChorusError, "from_the_future", "New: it (from_the_future)")


def test_an_answer_of_something_else_is_named() -> None:
    error = from_answer(502, "Bad Gateway", "text/html", b"<h1>nginx</h1>", "http://proxy:80")
    assert error.status == 502 and "http://proxy:80 answered 502 Bad Gateway" in str(error)
    assert from_answer(500, "", "application/problem+json", b"{", "http://h:1").status == 500


def test_a_mismatch_names_rank_field_and_both_values(client: Client, a: RemoteWorker, b: RemoteWorker) -> None:
    a.put("unlike", numpy.zeros(2, "f4"))
    b.put("unlike", numpy.zeros(3, "f4"))
    with pytest.raises(chorus.Mismatch, match=r"rank 1 \('b'\) is 3, that of rank 0 \('a'\) is 2") as caught:
        client.run("all_reduce", "all", "unlike")
    assert caught.value.ranks == [1] and caught.value.errors[0].pointer == "/shape"


def test_tensors_and_groups_that_are_missing(client: Client, a: RemoteWorker, b: RemoteWorker) -> None:
    a.put("half", numpy.zeros(2))
    with pytest.raises(chorus.UnknownTensor) as caught:
        client.run("all_reduce", "all", "half")
    assert caught.value.ranks == [1]
    with pytest.raises(chorus.UnknownGroup, match="nobody"):
        client.run("all_reduce", "nobody", "half")
    with pytest.raises(chorus.UnknownWorker, match="nobody"):
        client.worker("nobody")


def test_fields_that_are_wrong_are_pointed_to(client: Client) -> None:
    with pytest.raises(chorus.InvalidField) as caught:
        client.run("all_reduc", "all", "x")
    assert [error.pointer for error in caught.value.errors] == ["/op"]
    assert "all_reduce" in str(caught.value)


def test_a_key_for_another_request_is_refused(client: Client, a: RemoteWorker, b: RemoteWorker) -> None:
    for worker in (a, b):
        worker.put("keyed", numpy.zeros(2, "f4"))
    first = client.run("all_reduce", "all", "keyed", key="python-test-1")
    assert client.run("all_reduce", "all", "keyed", key="python-test-1").id == first.id
    with pytest.raises(chorus.IdempotencyReused):
        client.run("all_reduce", "all", "keyed", reduce="max", key="python-test-1")
    assert a.get("keyed").tolist() == [0, 0]


def test_urls_that_are_none() -> None:
    for url in ("ftp://h", "http://", "http://h/path", "http://u:p@h", ""):
        with pytest.raises(ValueError, match="URL"):
            Client(url)
    assert Client("localhost:1234").url == "http://localhost:1234"
    assert Client("https://[::1]").url == "https://[::1]:443"


def test_arguments_of_a_client_that_cannot_be_are_named() -> None:
    cases: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"url": 7070}, TypeError, "url is 7070, expected a string"),
        ({"url": "http://c:port"}, ValueError, "URL 'http://c:port': Port could not be cast"),
        ({"ca": "/nowhere/ca.pem"}, FileNotFoundError, "/nowhere/ca.pem"),
        ({"certificate": ("/nowhere/cert.pem", "/nowhere/key.pem")}, FileNotFoundError, "/nowhere/cert.pem"),
        ({"certificate": "cert.pem"}, TypeError, "certificate is 'cert.pem', expected the paths"),
        ({"timeout": "5"}, TypeError, "timeout is '5', expected seconds"),
        ({"retries": "x"}, TypeError, "retries is 'x', expected a whole number"),
        ({"retries": -1}, ValueError, "retries is -1, expected 0 or more"),
    ]
    for arguments, kind, told in cases:
        with pytest.raises(kind, match=told):
            given: dict[str, Any] = {"url": "http://127.0.0.1:1", "retries": 0}
            chorus.Client(**given | arguments).workers()
