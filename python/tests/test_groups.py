"""Workers and groups."""

import pytest

import chorus
from chorus import Client
from services import Fleet


def test_workers_are_listed_with_where_they_are(client: Client, fleet: Fleet) -> None:
    workers = {worker.id: worker for worker in client.workers()}
    assert workers.keys() == {"a", "b"}
    assert (workers["a"].url, workers["a"].state) == (fleet.workers["a"].url, "ready")
    assert workers["a"].locality.host


def test_a_group_of_a_size(client: Client) -> None:
    group = client.create_group("two", 2, on_failure="shrink", min_ranks=1)
    assert sorted(member.worker for member in group.members) == ["a", "b"]
    again = client.create_group("two", ["b", "a"])
    assert again.epoch == group.epoch + 1
    assert client.wait_for_group("two", after_epoch=group.epoch).epoch == again.epoch
    assert {one.name for one in client.groups()} >= {"all", "two"}
    client.delete_group("two")
    with pytest.raises(chorus.UnknownGroup) as caught:
        client.group("two")
    assert isinstance(caught.value, chorus.NotFound)


def test_waiting_ends_in_time_and_says_what_is_missing(client: Client) -> None:
    with pytest.raises(chorus.NoAnswer, match="3 workers are ready"):
        client.wait_for_workers(3, timeout=0.3)
    assert {"a", "b"} <= {worker.id for worker in client.wait_for_workers(["b", "a"])}
    with pytest.raises(chorus.NoAnswer, match="until workers nobody are ready, 1 of 2"):
        client.wait_for_workers(["a", "nobody"], timeout=0.3)
    with pytest.raises(TypeError, match="workers is a string"):
        client.wait_for_workers("ab", timeout=0.3)
    with pytest.raises(chorus.NoAnswer, match="no group has that name"):
        client.wait_for_group("never", timeout=0.3)


def test_names_are_quoted(client: Client) -> None:
    with pytest.raises(chorus.UnknownGroup, match="no group"):
        client.group("with space/and ü")
    with pytest.raises(ValueError, match="no name"):
        client.group("..")
