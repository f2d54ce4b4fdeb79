// How a tensor is described in HTTP: header fields beside its bytes, or JSON without them.
#pragma once

#include "http/api/tensors.hpp"
#include "http/message.hpp"
#include "worker/service/identity.hpp"
#include "worker/tensors/store.hpp"

namespace chorus::service {

// The ETag, or "" for what lies in a client's region: there the bytes change without our knowing.
[[nodiscard]] std::string tag_of(tensors::Tensor const& tensor, Identity const& identity);

// "cpu", or "cuda:0".
[[nodiscard]] std::string device_of(tensors::Tensor const& tensor);

// Tensor-Dtype, Tensor-Shape, Tensor-Version, Tensor-Device, ETag, Accept-Ranges; Tensor-Shm-Region and
// Tensor-Shm-Offset of what lies in a client's region.
void describe(tensors::Tensor const& tensor, Identity const& identity, http::Fields& fields);

[[nodiscard]] api::TensorInfo to_info(tensors::Tensor const& tensor);

// The {name} of a route: 400 bad_request unless it is a valid name.
[[nodiscard]] http::Checked<std::string> tensor_name(http::Request const& request);

// The path of a tensor: a name is one segment, its slashes are "%2F".
[[nodiscard]] std::string tensor_path(std::string_view name);

// The version that If-Match allows to change: nothing where anything may be changed, 0 where the tensor must not exist.
// Problems: precondition_failed; bad_request; busy while a collective writes the tensor in place.
[[nodiscard]] http::Checked<std::optional<std::uint64_t>> expected_version(http::Fields const& fields,
                                                                           tensors::Store const& store,
                                                                           std::string const& name,
                                                                           Identity const& identity);

// precondition_failed instead of mismatch: between the look at the condition and the change somebody else was faster.
[[nodiscard]] http::Problem to_condition_problem(Error const& error);

}  // namespace chorus::service
