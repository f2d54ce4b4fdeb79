#!/usr/bin/env python3
"""chorus-demo-python: a Python program asks two workers for a sum, and is two members of a group itself.

CHORUS_COORDINATOR says where the coordinator is, CHORUS_TOKEN_FILE which token the client has. The tokens of the
members are those that chorus-tokens makes in /run/chorus.
"""

import socket

import chorus
import numpy


def member(group):
    return group.all_reduce(numpy.array([group.rank + 1, 10])).tolist()


if __name__ == "__main__":
    group, tensor = "python-demo", "python-demo/x"
    with chorus.Client() as client:
        a, b = [client.worker(worker.id) for worker in client.wait_for_workers(2)][:2]
        client.create_group(group, [a.id, b.id])
        a.put(tensor, numpy.array([1, 2], "i4"))
        b.put(tensor, numpy.array([5, 6], "i4"))
        client.run("all_reduce", group, tensor)
        print(f"[1 2] on worker {a.id} and [5 6] on worker {b.id}: {a.get(tensor)}")
        client.delete_group(group)

    options = {"host": "::", "advertise": socket.gethostname()}
    options |= {"auth_tokens": "/run/chorus/tokens", "token_file": "/run/chorus/join"}
    print(f"[1 10] and [2 10] on two members in Python: {chorus.run(2, member, options=options)[1]}")
