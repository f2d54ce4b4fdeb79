// Description of a tensor in HTTP: header fields beside its bytes, or JSON without them.
#pragma once

#include "http/api/tensors/tensors.hpp"
#include "http/message/message.hpp"
#include "worker/service/requests/identity.hpp"
#include "worker/tensors/store.hpp"

namespace chorus::service {

// The ETag, or "" for a tensor in a client's region, where the bytes change without notice.
[[nodiscard]] std::string tag_of(tensors::Tensor const& tensor, Identity const& identity);

// "cpu", or "cuda:0".
[[nodiscard]] std::string device_of(tensors::Tensor const& tensor);

// Sets Tensor-Dtype, Tensor-Shape, Tensor-Version, Tensor-Device, ETag, Accept-Ranges; and Tensor-Shm-Region and
// Tensor-Shm-Offset for a tensor in a client's region.
void describe(tensors::Tensor const& tensor, Identity const& identity, http::Fields& fields);

[[nodiscard]] api::TensorInfo to_info(tensors::Tensor const& tensor);

// The {name} of a route: 400 bad_request unless it is a valid name.
[[nodiscard]] http::Checked<std::string> tensor_name(http::Request const& request);

// Path of a tensor: its name is one segment, with "%2F" for slashes.
[[nodiscard]] std::string tensor_path(std::string_view name);

// The version that If-Match allows to change: empty if any, 0 if the tensor must not exist. Problems:
// precondition_failed; bad_request; busy while a collective writes the tensor in place.
[[nodiscard]] http::Checked<std::optional<std::uint64_t>> expected_version(http::Fields const& fields,
                                                                           tensors::Store const& store,
                                                                           std::string const& name,
                                                                           Identity const& identity);

// precondition_failed instead of mismatch: the tensor was changed after the condition was checked.
[[nodiscard]] http::Problem to_condition_problem(Error const& error);

}  // namespace chorus::service
