// What C hands over, checked, as the C++ interface takes it. Errors: WorkerErrc::bad_argument, naming the argument.
#pragma once

#include <chorus/chorus.h>

#include <chrono>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "worker/api/errc.hpp"
#include "worker/api/joined_group.hpp"
#include "worker/api/local_coordinator.hpp"
#include "worker/api/worker.hpp"

namespace chorus::library {

// A struct that begins with its own size, of a program that was compiled with an older or a newer header: what the
// program does not know is 0, and what this library does not know has to be 0. Null: all of it is 0.
template <class Struct>
[[nodiscard]] Result<Struct> read_sized(Struct const* given, std::size_t first_size, char const* name) {
  Struct known{};
  known.size = sizeof(Struct);
  if (given == nullptr) return known;
  constexpr std::size_t growth = 1024;  // by far more than a struct may grow: a larger size was never set
  auto const size = given->size;
  if (size < first_size || size % alignof(Struct) != 0 || size > sizeof(Struct) + growth)
    return Error(WorkerErrc::bad_argument, std::string(name) + ": size is " + std::to_string(size) + ", not sizeof(" +
                                               name + "), which is " + std::to_string(sizeof(Struct)));
  auto const* const bytes = reinterpret_cast<std::byte const*>(given);
  for (std::size_t i = sizeof(Struct); i < size; ++i)
    if (bytes[i] != std::byte{0})
      return Error(WorkerErrc::bad_argument,
                   std::string(name) + ": it has a member that libchorus " + chorus_version() + " does not know");
  std::memcpy(&known, given, std::min(size, sizeof(Struct)));
  return known;
}

// A struct that the library fills in, as much of it as the program knows.
template <class Struct>
[[nodiscard]] Status write_sized(Struct* given, Struct filled, std::size_t first_size, char const* name) {
  if (given == nullptr) return Error(WorkerErrc::bad_argument, std::string(name) + " is NULL");
  auto const size = given->size;
  if (size < first_size)
    return Error(WorkerErrc::bad_argument, std::string(name) + ": size is " + std::to_string(size) + ", not sizeof(" +
                                               name + "), which is " + std::to_string(sizeof(Struct)));
  filled.size = size;
  std::memcpy(given, &filled, std::min(size, sizeof(Struct)));
  return ok();
}

[[nodiscard]] Result<WorkerOptions> to_worker_options(chorus_worker_options_t const* options);
[[nodiscard]] Result<CollectiveOptions> to_options(chorus_collective_options_t const* options);
[[nodiscard]] Result<MessageOptions> to_options(chorus_message_options_t const* options);
[[nodiscard]] Result<GroupOptions> to_options(chorus_group_options_t const* options);
[[nodiscard]] Result<CoordinatorOptions> to_options(chorus_coordinator_options_t const* options);
// CHORUS_ANY_SOURCE or a rank; whether it is one of the group, the C++ interface says.
[[nodiscard]] Result<std::uint32_t> to_source(std::int64_t source);
[[nodiscard]] inline chorus_received_t to_received(Received const& received) {
  return {received.bytes, received.source, 0};
}

// `name` is the argument's. Null is an empty view.
[[nodiscard]] Result<TensorView> to_view(chorus_tensor_t const* tensor, char const* name);
[[nodiscard]] Result<ConstTensorView> to_view(chorus_const_tensor_t const* tensor, char const* name);
[[nodiscard]] Result<std::vector<TensorView>> to_views(chorus_tensor_t const* tensors, std::size_t count,
                                                       char const* name = "tensor");
[[nodiscard]] Result<std::vector<ConstTensorView>> to_views(chorus_const_tensor_t const* tensors, std::size_t count,
                                                            char const* name);

[[nodiscard]] Result<std::chrono::steady_clock::time_point> to_deadline(std::int64_t timeout_ms);

}  // namespace chorus::library
