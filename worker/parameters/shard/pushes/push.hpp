// A push, which changes a shard. Owner and backups apply the same pushes in the same order, and so hold the same bits.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collectives/core/dtype.hpp"
#include "worker/parameters/shard/pushes/window.hpp"
#include "worker/tensors/memory.hpp"

namespace chorus::parameters {

enum class PushKind : std::uint8_t {
  gradient,  // a gradient of every element of the shard
  rows,      // gradients of selected rows: see rows.hpp
  value,     // new values of all elements
  clients,   // a new list of clients whose clocks count; from the coordinator, without client and sequence
};
inline constexpr std::string_view push_kind_names[] = {"gradient", "rows", "value", "clients"};

struct Push {
  PushKind kind = PushKind::gradient;
  Client client;
  std::uint64_t sequence = 0;
  std::optional<std::uint64_t> clock;
  Dtype dtype = Dtype::f32;  // of the gradient: the shard's; for shards of f16 and bf16 also f32
  std::shared_ptr<tensors::Block const> data;
  std::uint64_t rows = 0;            // of a push of rows
  std::optional<double> norm;        // of the whole push, if the shard has only a part of it
  std::vector<std::string> clients;  // of PushKind::clients
};

}  // namespace chorus::parameters
