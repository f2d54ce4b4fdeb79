// Description of the values in answers to pulls: entity tags of one shard and of all, and header fields.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "http/message/message.hpp"
#include "worker/parameters/shard/shard.hpp"
#include "worker/service/tensors/entity_tag.hpp"

namespace chorus::service {

[[nodiscard]] std::string tag_of(std::uint32_t epoch, std::uint64_t version);

// One tag for all shards: their common tag, or all of their tags.
[[nodiscard]] std::string joined(std::vector<std::string> const& tags);

// Inverse of joined(), for the first tag that can belong to this many shards; empty if there is none.
[[nodiscard]] std::vector<std::string> split_tags(TagList const& list, std::size_t shards);

struct Described {
  std::string tag;
  std::uint64_t version = 0;
  std::uint32_t epoch = 0;
  bool is_unconfirmed = false;  // see ShardHost::is_suspended
};

void describe_in(http::Fields& fields, Described const& what);
void describe_values(http::Fields& fields, Dtype dtype, std::vector<std::uint64_t> const& shape);
[[nodiscard]] std::vector<std::uint64_t> shape_of(parameters::ShardSpec const& spec);

}  // namespace chorus::service
