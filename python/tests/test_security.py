"""Tokens and TLS."""

import pathlib
import subprocess
from collections.abc import Iterator

import numpy
import pytest

import chorus
from chorus.transport import Origins
from services import Fleet, program


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Fleet, pathlib.Path]]:
    """A fleet over TLS that asks for tokens, and the folder with certificates and tokens."""
    place = tmp_path_factory.mktemp("secured")

    def openssl(arguments: str) -> None:
        subprocess.run(["openssl", *arguments.split()], cwd=place, check=True, capture_output=True)

    key = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"
    openssl(f"req -x509 {key} -keyout ca.key -out ca.pem -days 2 -subj /CN=chorus-ca")
    openssl(f"req {key} -keyout s.key -out s.csr -subj /CN=s")
    (place / "names").write_text("subjectAltName=IP:127.0.0.1")
    openssl("x509 -req -in s.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -out s.pem -extfile names")
    for role in ("join", "submit", "read"):
        create = ["token", "create", "--file", "tokens.jsonl", "--role", role, "--id", role, "--out", role]
        subprocess.run([program("chorus"), *create], cwd=place, check=True, capture_output=True)
    flags = ["--tls-cert", f"{place}/s.pem", "--tls-key", f"{place}/s.key", "--tls-ca", f"{place}/ca.pem"]
    flags += ["--auth-tokens", f"{place}/tokens.jsonl", "--token-file", f"{place}/join"]
    with Fleet(flags=flags, worker_flags=flags, ca=place / "ca.pem", token=place / "submit") as fleet:
        yield fleet, place


def test_everything_works_over_tls(secured: tuple[Fleet, pathlib.Path]) -> None:
    client = secured[0].client
    assert client.url.startswith("https://")
    sent = numpy.arange(1 << 20, dtype="f4")
    a, b = client.worker("a"), client.worker("b")
    for worker in (a, b):
        worker.put("x", sent)
    client.run("all_reduce", "all", "x")
    assert numpy.array_equal(a.get("x"), 2 * sent)
    w = client.create_parameter("w", "all", [4])
    w.push(numpy.ones(4, "f4"))
    assert w.pull().tolist() == [1, 1, 1, 1]
    assert next(client.events(0, timeout=10)).type == "coordinator.started"


def test_a_token_that_is_missing_or_not_enough(secured: tuple[Fleet, pathlib.Path]) -> None:
    fleet, place = secured
    with chorus.Client(fleet.coordinator.url, ca=place / "ca.pem") as client, pytest.raises(chorus.Unauthorized):
        client.workers()
    token = (place / "read").read_text().strip()
    with chorus.Client(fleet.coordinator.url, ca=place / "ca.pem", token=lambda: token) as client:
        assert len(client.workers()) == 2
        with pytest.raises(chorus.Forbidden) as caught:
            client.delete_group("all")
    assert token not in str(caught.value) + repr(client) + repr(vars(caught.value))


def test_a_certificate_that_is_not_trusted(secured: tuple[Fleet, pathlib.Path]) -> None:
    with chorus.Client(secured[0].coordinator.url) as client:
        with pytest.raises(chorus.ConnectionFailed, match="the certificate is not trusted: .*ca= names") as caught:
            client.workers()
    assert not caught.value.retryable


def test_settings_come_from_the_environment(
    secured: tuple[Fleet, pathlib.Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet, place = secured
    monkeypatch.setenv("CHORUS_COORDINATOR", fleet.coordinator.url)
    monkeypatch.setenv("CHORUS_TOKEN_FILE", str(place / "submit"))
    monkeypatch.setenv("CHORUS_TLS_CA", str(place / "ca.pem"))
    with chorus.Client() as client:
        assert len(client.workers()) == 2


def test_a_redirection_to_plain_http_is_refused() -> None:
    origins = Origins("https://leader")
    with pytest.raises(chorus.ConnectionFailed, match="not encrypted"):
        origins.redirected(origins.first(), "http://leader/v1/workers")
    assert origins.redirected(origins.first(), "/v1/workers") == origins.first()
