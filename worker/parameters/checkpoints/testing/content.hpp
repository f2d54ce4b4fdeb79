// Parameters whose bytes follow from one number, to be written by any number of shards and recognized again.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "worker/parameters/checkpoints/checkpoint.hpp"
#include "worker/parameters/checkpoints/write.hpp"

namespace chorus::checkpoints::testing {

// "weights": f32 of 24 rows of 5, with "momentum" and "row_steps" (one per row) and, per shard, a "window" that cannot
// be cut. "bias": 7 elements of f16, on the first shard.
class Content {
 public:
  explicit Content(std::uint64_t version) : version_(version) {}

  // Writes one file per shard, then the manifest.
  [[nodiscard]] Status write(Files& files, std::string const& directory, std::uint64_t number,
                             std::uint64_t shards) const;
  // The steps of write().
  [[nodiscard]] Result<FileRecord> write_shard(Files& files, std::string const& directory, std::uint64_t number,
                                               std::uint64_t shard, std::uint64_t shards) const;
  [[nodiscard]] Manifest manifest(std::uint64_t number, std::vector<FileRecord> records) const;

  // Returns true if the checkpoint has exactly this content, read as `shards` shards.
  [[nodiscard]] bool is_in(Checkpoint const& checkpoint, std::uint64_t shards) const;

  static constexpr std::uint64_t rows = 24, row_elements = 5, bias_elements = 7;

 private:
  std::uint64_t version_;
};

// Returns bytes that depend on name, version and position; `at` is the position of the first.
[[nodiscard]] std::vector<std::byte> bytes_of(std::string const& name, std::uint64_t version, std::uint64_t at,
                                              std::uint64_t count);

}  // namespace chorus::checkpoints::testing
