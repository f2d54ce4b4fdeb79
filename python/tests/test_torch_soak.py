"""Random calls of the backend "chorus" of torch.distributed, for CHORUS_SOAK_SECONDS."""

import os
import random
from typing import Any

import pytest

from torch_ranks import require_torch

require_torch()

import torch_soak  # noqa: E402

SECONDS = float(os.environ.get("CHORUS_SOAK_SECONDS", "3"))
SEED = int(os.environ.get("CHORUS_SEED") or random.randrange(1_000_000))


@pytest.mark.parametrize("ends", [True, False], ids=["destroyed", "left"])
def test_random_calls(ends: bool, ranks: Any) -> None:
    """Ranks end with calls under way, once by destroy_process_group, and once by the end of the program."""
    print(f"CHORUS_SEED={SEED}")
    assert all(count > 0 for count in ranks(3, torch_soak.soaks, SEED, SECONDS, ends=ends, patience=SECONDS + 60))
