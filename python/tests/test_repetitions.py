"""Requests are repeated where that is safe, and what they ask for happens once."""

import threading
import time
from typing import Any

import numpy
import pytest

import chorus
from chorus import Client, RemoteWorker
from chorus.transport import Origins
from services import Fleet
from stand_ins import Answer, HeldPort, StandIn, losing, message, problem, proxy_error


def test_a_launch_whose_answer_was_lost_is_not_run_twice(fleet: Fleet, a: RemoteWorker, b: RemoteWorker) -> None:
    for worker in (a, b):
        worker.put("once", numpy.ones(4, "i4"))
    with losing(fleet.coordinator.url, "POST", "/v1/collectives", 2) as proxy, Client(proxy.url) as client:
        record = client.run("all_reduce", "all", "once")
    assert len(proxy.asked) == 3
    assert len({headers["Idempotency-Key"] for _, _, headers, _ in proxy.asked}) == 1
    assert a.get("once").tolist() == [2, 2, 2, 2] and a.tensors("once")[0].version == 2
    assert [one.id for one in fleet.client.records() if one.request.tensor == "once"] == [record.id]


def test_a_members_call_whose_answer_was_lost_is_not_run_twice(fleet: Fleet, a: RemoteWorker, b: RemoteWorker) -> None:
    for worker in (a, b):
        worker.put("call/once", numpy.ones(4, "i4"))
    first = a.group("all").next_sequence
    with losing(a.url, "POST", "/v1/groups/all/all_reduce") as proxy:
        by_proxy = fleet.client.worker("a", url=proxy.url)
        other = threading.Thread(target=lambda: b.call("all_reduce", "all", "call/once"))
        other.start()
        report = by_proxy.call("all_reduce", "all", "call/once")
        other.join()
    assert report.sequence == first and a.group("all").next_sequence == report.next_sequence
    assert a.get("call/once").tolist() == [2, 2, 2, 2]


def test_a_push_whose_answer_was_lost_counts_once(fleet: Fleet) -> None:
    w = fleet.client.create_parameter("once", "all", [2])
    with losing(w.info.endpoints[0].url, "POST", "/v1/parameters/once/gradient") as proxy:
        w._workers = Origins(proxy.url)
        assert w.push(numpy.ones(2, "f4")).duplicate  # the repetition found it applied
    assert w.refresh().state == "ready"
    assert w.pull().tolist() == [1, 1] and w.sequence == 1
    fleet.client.delete_parameter("once")


def test_a_push_in_doubt_has_to_be_repeated(fleet: Fleet) -> None:
    w = fleet.client.create_parameter("doubt", "all", [2])
    with StandIn(lambda *_: time.sleep(1)) as silent:
        w._workers = Origins(silent.url)
        with pytest.raises(chorus.NoAnswer, match="within 0.2 s"):
            w.push(numpy.ones(2, "f4"), timeout=0.2)
    w.refresh()
    assert w.in_doubt
    with pytest.raises(chorus.PushInDoubt, match="push 0 of client 'python-.*' to parameter 'doubt'"):
        w.push(numpy.zeros(2, "f4"))
    w.push(numpy.ones(2, "f4"), repeat=True)
    assert not w.in_doubt and w.pull().tolist() == [1, 1]
    with pytest.raises(chorus.PushInDoubt):
        w.push(numpy.ones(2, "f4"), repeat=True)
    fleet.client.delete_parameter("doubt")


def test_epochs_and_deletions_are_made_once(fleet: Fleet) -> None:
    with losing(fleet.coordinator.url, "PUT", "/v1/groups/mine") as proxy, Client(proxy.url) as client:
        assert client.create_group("mine", ["a", "b"]).epoch == 1
    with losing(fleet.coordinator.url, "DELETE", "/v1/groups/mine") as proxy, Client(proxy.url) as client:
        client.delete_group("mine")  # the repetition is 404
        with pytest.raises(chorus.UnknownGroup):
            client.delete_group("mine")


def test_tensors_survive_lost_answers(fleet: Fleet, a: RemoteWorker) -> None:
    sent = numpy.arange(1 << 20, dtype="f4")
    with losing(a.url, "PUT", "/v1/tensors/lost") as proxy:
        fleet.client.worker("a", url=proxy.url).put("lost", sent)
    with losing(a.url, "GET", "/v1/tensors/lost") as proxy:
        assert numpy.array_equal(fleet.client.worker("a", url=proxy.url).get("lost"), sent)


def test_connections_are_used_again_also_by_another_thread() -> None:
    with StandIn(lambda *_: message(200, {"items": []})) as service, Client(service.url) as client:
        for _ in range(20):
            client.workers()
        thread = threading.Thread(target=client.workers)
        thread.start()
        thread.join()
    assert len(service.connections) == 1 and len(service.asked) == 21


def test_retry_after_is_honoured_within_the_deadline() -> None:
    answers = [problem(503, "unavailable", Retry_After="1"), problem(429, "rate_limited", Retry_After="0")]
    answers.append(message(200, {"items": []}))
    with StandIn(lambda *_: answers.pop(0)) as service, Client(service.url) as client:
        begun = time.monotonic()
        assert client.workers() == []
        assert 0.9 < time.monotonic() - begun < 20
    with StandIn(lambda *_: problem(503, "unavailable", Retry_After="30")) as service, Client(service.url) as client:
        begun = time.monotonic()
        with pytest.raises(chorus.Unavailable) as caught:
            client.workers(timeout=25)
        assert caught.value.retry_after_s == 30 and time.monotonic() - begun < 20


def test_a_proxy_without_its_service_is_a_lost_answer() -> None:
    answers = [proxy_error(status) for status in (502, 503, 504)] + [message(200, {"items": []})]
    with StandIn(lambda *_: answers.pop(0)) as proxy, Client(proxy.url) as client:
        assert client.workers() == []
    with StandIn(lambda *_: proxy_error(502)) as proxy, StandIn(lambda *_: message(200, {"items": []})) as other:
        with Client([proxy.url, other.url]) as client:
            assert client.workers() == [] and client.url == other.url
    with StandIn(lambda *_: proxy_error(504)) as proxy, Client(proxy.url, retries=1) as client:
        with pytest.raises(
            chorus.ConnectionFailed, match="504 Gateway Timeout, which is no answer of Chorus"
        ) as caught:
            client.workers()
        assert caught.value.retryable and len(proxy.asked) == 2


def test_a_service_that_says_nothing_ends_a_call_in_time() -> None:
    release = threading.Event()

    def answer(*_: Any) -> None:
        release.wait(60)

    with StandIn(answer) as service:
        with Client(service.url, timeout=0.3) as client:
            begun = time.monotonic()
            with pytest.raises(chorus.NoAnswer, match="no answer of http://127.0.0.1:.* within 0.3 s"):
                client.workers()
            with pytest.raises(TimeoutError):
                client.worker("a", url=service.url).put("x", numpy.zeros(8, "f4"))
            assert time.monotonic() - begun < 20
        release.set()


def test_nobody_there_is_told_soon() -> None:
    with HeldPort() as nobody, Client(nobody.url, retries=2) as client:
        begun = time.monotonic()
        with pytest.raises(chorus.ConnectionFailed, match=f"{nobody.url}: no connection") as caught:
            client.workers()
        assert caught.value.retryable and isinstance(caught.value, ConnectionError)
        assert time.monotonic() - begun < 20


def test_redirections_lead_to_the_leader_and_are_remembered() -> None:
    with StandIn(lambda *_: message(200, {"items": []})) as leader:
        with StandIn(lambda _m, path, *_: message(307, {}, Location=leader.url + path)) as standby:
            with Client(standby.url, token="secret") as client:
                client.workers()
                client.groups()
            assert (len(standby.asked), len(leader.asked)) == (1, 2)
            assert leader.asked[1][2]["Authorization"] == "Bearer secret"


def test_services_that_redirect_in_a_circle_are_a_cluster_without_a_leader() -> None:
    with StandIn(lambda _m, path, *_: message(307, {}, Location=path)) as itself, Client(itself.url) as client:
        with pytest.raises(chorus.Unavailable, match=f"leads at present: {itself.url} redirects to itself") as caught:
            client.workers(timeout=0.5)
        assert caught.value.retryable and len(itself.asked) == 1
    with StandIn(lambda _m, path, *_: message(307, {}, Location=other.url + path)) as one:
        with StandIn(lambda _m, path, *_: message(307, {}, Location=one.url + path)) as other:
            with Client(one.url) as client, pytest.raises(chorus.Unavailable, match="which redirects as well"):
                client.workers(timeout=0.5)
            assert (len(one.asked), len(other.asked)) == (1, 1)


def test_a_coordinator_that_redirects_to_itself_until_it_leads_is_waited_for() -> None:
    def answer(_method: str, path: str, *_: Any) -> Answer:
        leads = len(service.asked) > 2
        return message(200, {"items": []}) if leads else message(307, {}, Location=path)

    with StandIn(answer) as service, Client(service.url) as client:
        assert client.workers() == []


def test_a_redirected_body_goes_to_the_leader(fleet: Fleet) -> None:
    with StandIn(lambda _m, path, *_: message(307, {}, Location=fleet.coordinator.url + path)) as standby:
        with Client([standby.url]) as client:
            assert client.create_group("redirected", ["a", "b"]).epoch == 1
            client.delete_group("redirected")


def test_another_coordinator_of_the_list_answers() -> None:
    with HeldPort() as gone, StandIn(lambda *_: message(200, {"items": []})) as leader:
        with StandIn(lambda *_: problem(503, "not_leader", Retry_After="0")) as standby:
            with Client(f"{gone.url},{standby.url},{leader.url}") as client:
                assert client.workers() == []
                assert client.url == leader.url


def test_the_coordinator_after_one_that_redirects_to_where_nobody_leads_answers() -> None:
    with HeldPort() as dead, StandIn(lambda *_: problem(503, "unavailable", Retry_After="0")) as knows_none:
        for to in (dead.url, knows_none.url):
            with StandIn(lambda _m, path, *_: message(307, {}, Location=to + path)) as standby:
                with StandIn(lambda *_: message(200, {"items": []})) as leader:
                    with Client([standby.url, leader.url]) as client:
                        assert client.workers() == []
                        assert client.url == leader.url and len(standby.asked) == 1


def test_a_standby_that_redirects_to_a_leader_that_has_died_takes_over() -> None:
    def answer(method: str, path: str, *_: Any) -> Answer:
        leads = len(standby.asked) > 3
        return message(200, {"items": []}) if leads else message(307, {}, Location=dead.url + path)

    with HeldPort() as dead, StandIn(answer) as standby, Client([dead.url, standby.url]) as client:
        assert client.workers() == []
        assert client.url == standby.url


def test_an_answer_that_ends_early_is_not_taken_for_a_tensor(fleet: Fleet) -> None:
    def answer(method: str, path: str, headers: Any, body: bytes) -> Answer:
        fields = {"Tensor-Dtype": "u8", "Tensor-Shape": "100", "Content-Type": "application/octet-stream"}
        return 200, fields, b"x" * 99

    with StandIn(answer) as service:
        worker = fleet.client.worker("a", url=service.url)
        with pytest.raises(chorus.ConnectionFailed, match="99 bytes, expected 100"):
            worker.get("x")


def test_a_refusal_before_the_body_was_sent_is_read() -> None:
    """The service answers and closes while the client is still sending."""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:

        def refuse() -> None:
            connection, _ = server.accept()
            connection.recv(65536)
            _, _, body = problem(413, "payload_too_large")
            fields = f"Content-Type: application/problem+json\r\nContent-Length: {len(body)}\r\nConnection: close"
            connection.sendall(f"HTTP/1.1 413 Too Large\r\n{fields}\r\n\r\n".encode() + body)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(1 << 20):
                pass
            connection.close()

        threading.Thread(target=refuse, daemon=True).start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        with Client(url) as client, pytest.raises(chorus.PayloadTooLarge):
            client.worker("a", url=url).put("x", numpy.zeros(64 << 20, "u1"))
