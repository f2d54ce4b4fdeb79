#!/usr/bin/python3
"""One rank of an all_reduce by PyTorch with Gloo: of f32, and by DistributedDataParallel's hook that sends fp16. Rank 0
prints a JSON object per size with the medians in seconds; encoding is included.
"""
import argparse
import json
import os
import time


class Bucket:
    """What the hook needs of a bucket of gradients."""

    def __init__(self, tensor):
        self._tensor = tensor

    def buffer(self):
        return self._tensor


def median(seconds):
    return sorted(seconds)[len(seconds) // 2]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rank", type=int, required=True)
    parser.add_argument("--ranks", type=int, required=True)
    parser.add_argument("--meet", required=True, help="HOST:PORT where rank 0 listens")
    parser.add_argument("--device", required=True, help="the network's device")
    parser.add_argument("--mib", type=int, nargs="+", required=True)
    parser.add_argument("--rounds", type=int, default=5, help="after the first, which does not count")
    options = parser.parse_args()
    os.environ["GLOO_SOCKET_IFNAME"] = options.device

    import torch
    import torch.distributed as dist
    from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook

    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=f"tcp://{options.meet}", rank=options.rank, world_size=options.ranks
    )

    def plain(bucket):
        dist.all_reduce(bucket.buffer())

    def fp16(bucket):
        fp16_compress_hook(None, bucket).wait()

    for mib in options.mib:
        found = {"mib": mib}
        for name, exchange, expected in (
            ("Gloo f32", plain, options.ranks * (options.ranks + 1) / 2),
            ("Gloo fp16 hook", fp16, (options.ranks + 1) / 2),  # the hook averages
        ):
            seconds = []
            for _ in range(options.rounds + 1):
                bucket = Bucket(torch.full(((mib << 20) // 4,), float(options.rank + 1)))
                dist.barrier()
                begun = time.monotonic()
                exchange(bucket)
                took = torch.tensor([time.monotonic() - begun], dtype=torch.float64)
                dist.all_reduce(took, op=dist.ReduceOp.MAX)
                seconds.append(float(took))
                if abs(float(bucket.buffer().min()) - expected) > 1e-3 * expected:
                    raise SystemExit("a wrong sum")
            found[name] = median(seconds[1:])
        if options.rank == 0:
            print(json.dumps(found), flush=True)
    dist.barrier()


if __name__ == "__main__":
    main()
