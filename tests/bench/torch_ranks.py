"""Processes that are ranks of torch.distributed, for measurements: the backends are process groups of the same ranks."""

import multiprocessing
import os
import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run(ranks, function, *args):
    """Calls ``function(rank, ranks, folder, *args)`` in so many processes, of one thread each, and returns the results.

    None stands for a rank that was killed. `folder` is one for all of them.
    """
    binaries = os.environ.get("CHORUS_BINARIES") or str(ROOT / "build/release/bin")
    os.environ.setdefault("CHORUS_BIN", binaries)
    os.environ.setdefault("CHORUS_LIBRARY", str(pathlib.Path(binaries).parent / "library/libchorus.so.0"))
    context = multiprocessing.get_context("spawn")
    pipes = [context.Pipe() for _ in range(ranks)]
    with tempfile.TemporaryDirectory() as folder:
        processes = [
            context.Process(target=_main, args=(theirs, rank, ranks, folder, function, args))
            for rank, (_, theirs) in enumerate(pipes)
        ]
        for process, (_, theirs) in zip(processes, pipes):
            with theirs:  # so that the end of a rank is seen here
                process.start()
        found = [_result(mine) for mine, _ in pipes]
        for process in processes:
            process.join()
    return found


def groups():
    """Returns process groups of all ranks by name: "gloo", and Chorus over shared memory and over tcp.

    The default process group is Gloo's. Each of Chorus has workers of its own: they read CHORUS_SHM when they start.
    """
    import torch.distributed as dist

    found = {"gloo": dist.group.WORLD}
    for link, shared in (("shm", "on"), ("tcp", "off")):
        os.environ["CHORUS_SHM"] = shared
        found[link] = dist.new_group(backend="chorus")
    return found


def _main(pipe, rank, ranks, folder, function, args):
    sys.path.insert(0, str(ROOT / "python/src"))
    import torch
    import torch.distributed as dist

    import chorus.torch  # noqa: F401

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/ranks", rank=rank, world_size=ranks)
    pipe.send(function(rank, ranks, folder, *args))


def _result(pipe):
    try:
        return pipe.recv()
    except EOFError:
        return None
