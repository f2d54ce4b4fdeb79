// Writes and commits checkpoints, and removes old ones. See checkpoint.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "collectives/core/dtype.hpp"
#include "collectives/core/result.hpp"
#include "worker/parameters/checkpoints/files.hpp"
#include "worker/parameters/checkpoints/manifest.hpp"

namespace chorus::checkpoints {

// An array of a shard in a checkpoint. The bytes outlive the call and must not change during it.
struct ShardArray {
  std::string name;  // "values", an array of the optimizer's state, or another
  Dtype dtype = Dtype::f32;
  // Elements of the parameter per element of the array; begin and end of the shard are multiples of this. 0: the array
  // is of the whole shard, has any length and cannot be split, such as existing rows and deduplication windows.
  std::uint64_t elements_each = 1;
  std::span<std::byte const> bytes;
};
struct ShardContent {
  std::string parameter;
  std::uint64_t begin = 0, end = 0;  // elements of the parameter
  std::vector<ShardArray> arrays;
  std::string metadata;              // JSON text: version, deduplication windows, step counter
  std::vector<std::uint64_t> shape;  // of the values, for readers of the file; empty: one dimension
};

// Writes NAME.safetensors into the checkpoint `number`; writers of one checkpoint use different names. After it has
// returned, the file survives a crash, but takes effect only with commit(). Errors: bad_content, exists, the operating
// system's.
[[nodiscard]] Result<FileRecord> write_file(Files& files, std::string const& directory, std::uint64_t number,
                                            std::string const& name, std::span<ShardContent const> shards);

// Makes the manifest's checkpoint the newest one. After it has returned, the checkpoint survives a crash. Errors:
// bad_manifest (see check), exists, the operating system's.
[[nodiscard]] Status commit(Files& files, std::string const& directory, Manifest const& manifest);

// Removes all but the newest `keep` committed checkpoints (at least 1), and older checkpoints that were never
// committed. A crash in between leaves no checkpoint that lacks a file.
[[nodiscard]] Status remove_old(Files& files, std::string const& directory, std::uint64_t keep);

// Returns a number above all checkpoints begun in the directory; 1 if the directory is empty or does not exist.
[[nodiscard]] Result<std::uint64_t> next_number(Files& files, std::string const& directory);

}  // namespace chorus::checkpoints
