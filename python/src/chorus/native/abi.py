"""The C interface, as ctypes sees it: what library/include/chorus/*.h declare, in the same order.

tests/test_abi.py compares this file with the headers: names, members, their types and order, and arguments.
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char_p, c_int, c_int32, c_int64, c_size_t, c_uint16, c_uint32, c_uint64, c_void_p
from typing import Any

SONAME = "libchorus.so.0"
VERSION = (0, 2)  # the first version that has all functions below

OK, NO_COORDINATOR, NOT_ASSIGNED, NO_NEW_EPOCH, PENDING, NOT_CANCELLABLE = 0, 2, 4, 5, 20, 23
ANY_SOURCE = -1
DTYPES = ("f64", "f32", "f16", "bf16", "i64", "i32", "i16", "i8", "u64", "u32", "u16", "u8")
REDUCTIONS = ("sum", "avg", "min", "max", "prod", "band", "bor", "bxor")


class WorkerOptions(ctypes.Structure):
    """``chorus_worker_options_t``."""

    _fields_ = [
        ("size", c_size_t),
        ("coordinator", c_char_p),
        ("host", c_char_p),
        ("port", c_uint16),
        ("reserved", c_uint16 * 3),
        ("advertise", c_char_p),
        ("id", c_char_p),
        ("region", c_char_p),
        ("zone", c_char_p),
        ("rack", c_char_p),
        ("locality_host", c_char_p),
        ("tensor_limit_bytes", c_uint64),
        ("memory_limit_bytes", c_uint64),
        ("private_memory", c_int32),
        ("insecure_no_auth", c_int32),
        ("link_checksum", c_char_p),
        ("spin_us", c_int64),
        ("drain_timeout_ms", c_int64),
        ("connections", c_uint64),
        ("log_level", c_char_p),
        ("auth_tokens", c_char_p),
        ("token_file", c_char_p),
        ("audit_log", c_char_p),
        ("tls_certificate", c_char_p),
        ("tls_key", c_char_p),
        ("tls_authorities", c_char_p),
        ("tls_requires_client_certificate", c_int32),
        ("rate_limit", c_uint32),
        ("allowed_hosts", POINTER(c_char_p)),
        ("allowed_hosts_length", c_size_t),
        ("cors_origins", POINTER(c_char_p)),
        ("cors_origins_length", c_size_t),
    ]


class WorkerInfo(ctypes.Structure):
    """``chorus_worker_info_t``."""

    _fields_ = [("size", c_size_t), ("id", c_char_p), ("url", c_char_p)]


class GroupInfo(ctypes.Structure):
    """``chorus_group_info_t``."""

    _fields_ = [
        ("size", c_size_t),
        ("name", c_char_p),
        ("rank", c_uint32),
        ("ranks", c_uint32),
        ("epoch", c_uint32),
        ("reserved", c_uint32),
    ]


class Tensor(ctypes.Structure):
    """``chorus_tensor_t``."""

    _fields_ = [("data", c_void_p), ("elements", c_uint64), ("dtype", c_int32), ("reserved", c_uint32)]


class ConstTensor(ctypes.Structure):
    """``chorus_const_tensor_t``."""

    _fields_ = [("data", c_void_p), ("elements", c_uint64), ("dtype", c_int32), ("reserved", c_uint32)]


class CollectiveOptions(ctypes.Structure):
    """``chorus_collective_options_t``."""

    _fields_ = [
        ("size", c_size_t),
        ("reduce", c_int32),
        ("root", c_uint32),
        ("algorithm", c_char_p),
        ("arity", c_uint32),
        ("reserved", c_uint32),
        ("algorithm_shape", POINTER(c_uint32)),
        ("algorithm_shape_length", c_size_t),
        ("counts", POINTER(c_uint64)),
        ("counts_length", c_size_t),
        ("receive_counts", POINTER(c_uint64)),
        ("receive_counts_length", c_size_t),
        ("timeout_ms", c_int64),
        ("compression", c_char_p),
        ("between", c_char_p),
        ("error_feedback", c_char_p),
        ("allow", c_char_p),
    ]


class CoordinatorOptions(ctypes.Structure):
    """``chorus_coordinator_options_t``."""

    _fields_ = [
        ("size", c_size_t),
        ("program", c_char_p),
        ("host", c_char_p),
        ("port", c_uint16),
        ("reserved", c_uint16 * 3),
        ("arguments", POINTER(c_char_p)),
        ("arguments_length", c_size_t),
    ]


class GroupOptions(ctypes.Structure):
    """``chorus_group_options_t``."""

    _fields_ = [
        ("size", c_size_t),
        ("workers", POINTER(c_char_p)),
        ("workers_length", c_size_t),
        ("order", c_char_p),
        ("ranks", c_uint32),
        ("reserved", c_uint32),
    ]


class MessageOptions(ctypes.Structure):
    """``chorus_message_options_t``."""

    _fields_ = [("size", c_size_t), ("tag", c_uint32), ("reserved", c_uint32), ("timeout_ms", c_int64)]


class Received(ctypes.Structure):
    """``chorus_received_t``."""

    _fields_ = [("bytes", c_uint64), ("source", c_uint32), ("reserved", c_uint32)]


STRUCTS: dict[str, type[ctypes.Structure]] = {
    "chorus_worker_options": WorkerOptions,
    "chorus_worker_info": WorkerInfo,
    "chorus_group_info": GroupInfo,
    "chorus_tensor": Tensor,
    "chorus_const_tensor": ConstTensor,
    "chorus_collective_options": CollectiveOptions,
    "chorus_coordinator_options": CoordinatorOptions,
    "chorus_group_options": GroupOptions,
    "chorus_message_options": MessageOptions,
    "chorus_received": Received,
}

_status = c_int32
_handle = c_void_p  # of a worker, group, request, memory or error
_to_handle = POINTER(c_void_p)
_in, _out, _options = POINTER(ConstTensor), POINTER(Tensor), POINTER(CollectiveOptions)

# Result and arguments of each function.
FUNCTIONS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "chorus_version": (c_char_p, ()),
    "chorus_has_feature": (c_int, (c_char_p,)),
    "chorus_status_name": (c_char_p, (_status,)),
    "chorus_error_create": (_handle, ()),
    "chorus_error_free": (None, (_handle,)),
    "chorus_error_status": (_status, (_handle,)),
    "chorus_error_text": (c_char_p, (_handle,)),
    "chorus_error_ranks": (c_size_t, (_handle, POINTER(POINTER(c_uint32)))),
    "chorus_worker_start": (_status, (POINTER(WorkerOptions), _to_handle, _handle)),
    "chorus_worker_stop": (_status, (_handle, _handle)),
    "chorus_worker_free": (None, (_handle,)),
    "chorus_worker_describe": (_status, (_handle, POINTER(WorkerInfo), _handle)),
    "chorus_worker_join": (_status, (_handle, c_char_p, c_int64, _to_handle, _handle)),
    "chorus_start_coordinator": (_status, (POINTER(CoordinatorOptions), c_int64, _to_handle, _handle)),
    "chorus_coordinator_url": (c_char_p, (_handle,)),
    "chorus_coordinator_free": (None, (_handle,)),
    "chorus_worker_create_group": (
        _status,
        (_handle, c_char_p, POINTER(GroupOptions), c_int64, _to_handle, _handle),
    ),
    "chorus_worker_delete_group": (_status, (_handle, c_char_p, c_int64, _handle)),
    "chorus_group_subgroup": (_status, (_handle, POINTER(c_uint32), c_size_t, c_int64, _to_handle, _handle)),
    "chorus_group_free": (None, (_handle,)),
    "chorus_group_describe": (_status, (_handle, POINTER(GroupInfo), _handle)),
    "chorus_group_block": (_status, (_handle, c_uint32, c_uint64, POINTER(c_uint64), POINTER(c_uint64), _handle)),
    "chorus_group_path": (_status, (_handle, POINTER(c_char_p), _handle)),
    "chorus_group_why_not_shared": (_status, (_handle, c_void_p, c_size_t, POINTER(c_size_t), _handle)),
    "chorus_memory_allocate": (_status, (_handle, c_size_t, _to_handle, _handle)),
    "chorus_memory_register": (_status, (_handle, c_void_p, c_size_t, _to_handle, _handle)),
    "chorus_memory_data": (c_void_p, (_handle,)),
    "chorus_memory_bytes": (c_size_t, (_handle,)),
    "chorus_memory_free": (None, (_handle,)),
    "chorus_request_test": (_status, (_handle, _handle)),
    "chorus_request_wait": (_status, (_handle, _handle)),
    "chorus_request_wait_for": (_status, (_handle, c_int64, _handle)),
    "chorus_request_wait_any": (_status, (_to_handle, c_size_t, c_int64, POINTER(c_size_t), _handle)),
    "chorus_request_cancel": (_status, (_handle, _handle)),
    "chorus_request_free": (None, (_handle,)),
}
_message, _received = POINTER(MessageOptions), POINTER(Received)
# The collectives and messages: each blocks, and has a form with _async that does not, which also takes where the request is put.
_CALLS: dict[str, tuple[Any, ...]] = {
    "chorus_all_reduce": (_handle, _in, _out, _options),
    "chorus_reduce": (_handle, _in, _out, _options),
    "chorus_broadcast": (_handle, _out, _options),
    "chorus_all_gather": (_handle, _in, _out, _options),
    "chorus_reduce_scatter": (_handle, _in, _out, _options),
    "chorus_gather": (_handle, _in, _out, _options),
    "chorus_scatter": (_handle, _in, _out, _options),
    "chorus_all_to_all": (_handle, _in, _out, _options),
    "chorus_barrier": (_handle, _options),
    "chorus_all_reduce_list": (_handle, _out, c_size_t, _options),
    "chorus_reduce_list": (_handle, _out, c_size_t, _options),
    "chorus_broadcast_list": (_handle, _out, c_size_t, _options),
    "chorus_all_gather_list": (_handle, _in, _out, c_size_t, _options),
    "chorus_reduce_scatter_list": (_handle, _in, _out, c_size_t, _options),
    "chorus_all_to_all_list": (_handle, _in, _out, c_size_t, _options),
    "chorus_send": (_handle, _in, c_uint32, _message),
    "chorus_recv": (_handle, _out, c_int64, _message, _received),
    "chorus_sendrecv": (_handle, _in, c_uint32, _out, c_int64, _message, _received),
}
for _name, _arguments in _CALLS.items():
    FUNCTIONS[_name] = (_status, (*_arguments, _handle))
    FUNCTIONS[f"{_name}_async"] = (_status, (*_arguments, _to_handle, _handle))
