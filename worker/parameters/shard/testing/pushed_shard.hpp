// Helpers that make a shard, apply pushes like a server, and read its values.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "worker/parameters/shard/shard.hpp"

namespace chorus::parameters::testing {

inline tensors::Pool& pool() {
  static tensors::Pool shared(64 << 20, 256 << 20);
  return shared;
}

inline std::unique_ptr<Shard> make(api::ShardAssignment const& assignment) {
  auto spec = ShardSpec::from(assignment);
  REQUIRE(spec.has_value());
  auto shard = Shard::make(std::move(*spec), pool());
  REQUIRE(shard.has_value());
  return std::move(*shard);
}

inline std::shared_ptr<tensors::Block> block_of(void const* data, std::size_t bytes) {
  auto block = pool().acquire(bytes).value();
  if (bytes != 0) std::memcpy(block->data(), data, bytes);
  return block;
}

inline Push gradient(std::string client, std::uint64_t sequence, std::vector<float> const& values,
                     std::optional<std::uint64_t> clock = std::nullopt) {
  Push push;
  push.client = {std::move(client), 0};
  push.sequence = sequence;
  push.clock = clock;
  push.data = block_of(values.data(), values.size() * sizeof(float));
  return push;
}

inline Push rows(std::string client, std::uint64_t sequence, std::vector<std::uint64_t> const& numbers,
                 std::vector<float> const& values) {
  std::vector<std::byte> bytes(numbers.size() * 8 + values.size() * 4);
  if (!numbers.empty()) std::memcpy(bytes.data(), numbers.data(), numbers.size() * 8);
  if (!values.empty()) std::memcpy(bytes.data() + numbers.size() * 8, values.data(), values.size() * 4);
  Push push;
  push.kind = PushKind::rows;
  push.client = {std::move(client), 0};
  push.sequence = sequence;
  push.rows = numbers.size();
  push.data = block_of(bytes.data(), bytes.size());
  return push;
}

inline void compute(Shard::Change& change, std::uint64_t each) {
  REQUIRE(change.begin().has_value());
  for (std::uint64_t at = 0; at < change.elements(); at += each)
    change.compute(at, std::min(each, change.elements() - at));
}

// Applies a push like a server whose threads compute `each` elements at a time. False if the push must wait.
inline bool apply(Shard& shard, Push const& push, std::uint64_t each = 1 << 16) {
  REQUIRE_FALSE(shard.refuse(push).has_value());
  auto const turn = shard.turn(push);
  REQUIRE(turn.has_value());
  if (*turn != Shard::Turn::now) return *turn == Shard::Turn::seen;
  REQUIRE_FALSE(shard.lacks_room(push).has_value());
  auto change = shard.prepare(push);
  REQUIRE(change.has_value());
  compute(*change, each);
  shard.finish(std::move(*change));
  return true;
}

inline std::vector<float> values(Shard const& shard) {
  auto const block = shard.values();
  std::vector<float> all(block->size_bytes() / sizeof(float));
  std::memcpy(all.data(), block->data(), block->size_bytes());
  return all;
}

inline http::ProblemCode refusal(Shard& shard, Push const& push) {
  if (auto const problem = shard.refuse(push)) return problem->code;
  if (auto const turn = shard.turn(push); turn.has_error()) return turn.error().code;
  auto const problem = shard.lacks_room(push);
  REQUIRE(problem.has_value());
  return problem->code;
}

inline std::unique_ptr<Shard> copy_of(Shard& shard, api::ShardAssignment const& assignment,
                                      bool between_rounds = false) {
  auto copy = make(assignment);
  auto image = shard.image();
  REQUIRE(image.has_value());
  if (between_rounds) leave_open_round(*image);
  for (auto const& array : image->arrays) {
    auto const place = copy->place_for(array.name, array.content.bytes.size());
    REQUIRE(place.size() == array.content.bytes.size());
    if (!place.empty()) std::memcpy(place.data(), array.content.bytes.data(), place.size());
  }
  REQUIRE(copy->restore(image->state));
  return copy;
}

}  // namespace chorus::parameters::testing
