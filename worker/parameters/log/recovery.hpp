// Recovers a shard from the files of its log.
#pragma once

#include <memory>
#include <string>

#include "worker/parameters/checkpoints/files.hpp"
#include "worker/parameters/log/errc.hpp"
#include "worker/parameters/shard/shard.hpp"

namespace chorus::parameters {

// Recovers the shard from the log of its last epoch: every acknowledged push is applied once. Pushes that were not
// synced may be missing. Errors: not_found; damaged, with file and byte, if synced bytes have changed; misfit; out of
// memory; the operating system's.
[[nodiscard]] Result<std::unique_ptr<Shard>> recover(checkpoints::Files& files, std::string const& shard_directory,
                                                     ShardSpec spec, ShardMemory memory);

}  // namespace chorus::parameters
