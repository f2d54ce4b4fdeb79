// Reads a shard from a checkpoint, however the checkpoint's shards were cut.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "http/json/problem.hpp"
#include "worker/parameters/checkpoints/files.hpp"
#include "worker/parameters/shard/shard.hpp"

namespace chorus::service {

[[nodiscard]] http::Problem checkpoint_problem(Error const& error);

// Runs on a thread of the disk. Without a number: the newest good checkpoint. Problems: not_found; digest_mismatch for
// a damaged checkpoint, naming the file; mismatch for another dtype or shape, or for shards that cannot be divided
// differently; unavailable without memory.
[[nodiscard]] http::Checked<std::unique_ptr<parameters::Shard>> load_shard(checkpoints::Files& files,
                                                                           std::string const& directory,
                                                                           std::optional<std::uint64_t> number,
                                                                           parameters::ShardSpec const& spec,
                                                                           parameters::ShardMemory memory);

}  // namespace chorus::service
