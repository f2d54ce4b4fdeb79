// A copy of a shard's state, for a backup, a checkpoint or the base of a log.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collectives/core/dtype.hpp"
#include "http/api/parameters/parameters.hpp"
#include "http/message/message.hpp"

namespace chorus::parameters {

// A copy of a shard's whole state, except its spec, at one position. The arrays' contents never change.
struct ShardImage {
  struct Array {
    std::string name;  // "values", of the optimizer's state, "held/0", ...
    Dtype dtype = Dtype::u8;
    std::uint64_t elements_each = 0;  // elements of the shard per element; 0: the array is not per element
    http::SharedBytes content;
  };
  api::ShardState state;
  std::vector<Array> arrays;
  std::optional<std::uint64_t> history = {};  // see serving/copy/history.hpp
};

// In rounds: removes the pushes of the open round, which their clients push again. The image is then that of the shard
// at the end of the last round. The round is kept if one of its clients has set values since.
void leave_open_round(ShardImage& image);

}  // namespace chorus::parameters
