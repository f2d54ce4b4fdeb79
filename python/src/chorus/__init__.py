"""Chorus: collectives and a parameter server over plain HTTP.

`run` calls a function on n processes that are the ranks of a group; `init` makes a process that `chorus.launch` has
started such a rank, and `Worker` makes any process a worker. They need libchorus.so.0.

`Client` asks a coordinator and its workers; `chorus.aio.Client` has the same calls for asyncio. `chorus.messages` has
what they return, and every problem is an exception of its own.
"""

from . import messages
from .client import Client
from .errors import ChorusError, ConnectionFailed, NoAnswer, PushInDoubt
from .events import EventStream
from .native.group import Group
from .native.memory import Registration
from .native.messages import Received
from .native.problems import *  # noqa: F403
from .native.problems import __all__ as _local_problems
from .native.work import Work, wait_any
from .native.worker import Worker
from .parameter import Parameter
from .problems import *  # noqa: F403
from .problems import __all__ as _problems
from .ranks import init
from .running import run
from .workers import RemoteWorker

__version__ = "0.2.0"

__all__ = [
    "ChorusError",
    "Client",
    "ConnectionFailed",
    "EventStream",
    "Group",
    "NoAnswer",
    "Parameter",
    "PushInDoubt",
    "Received",
    "Registration",
    "RemoteWorker",
    "Work",
    "Worker",
    "init",
    "messages",
    "run",
    "wait_any",
]
__all__ += _problems
__all__ += _local_problems
