// The manifest of a checkpoint: its parameters, and the files and bytes that hold them. It is written last; a directory
// without a manifest is not a checkpoint. docs/reference/checkpoints.md has the format.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/core/result.hpp"

namespace chorus::checkpoints {

inline constexpr std::string_view values_array = "values";

// A range of one array of a parameter, and the tensor in a file that holds it.
struct PieceRecord {
  std::string parameter;
  std::string array;                 // "values", "momentum", ...
  std::string tensor;                // its name in the file
  std::string dtype;                 // of the array
  std::uint64_t begin = 0, end = 0;  // elements of the parameter
  std::uint64_t elements_each = 1;   // elements of the parameter per element of the array

  friend bool operator==(PieceRecord const&, PieceRecord const&) = default;
};

// The metadata of a written shard. Opaque here.
struct ShardRecord {
  std::string parameter;
  std::uint64_t begin = 0, end = 0;
  std::string metadata;  // JSON text

  friend bool operator==(ShardRecord const&, ShardRecord const&) = default;
};

// A file of a checkpoint and its contents. write_file() returns it, and workers send it to the process that commits.
struct FileRecord {
  std::string name;
  std::uint64_t bytes = 0;
  std::string xxh3;    // 128 bits: checked whenever the checkpoint is opened
  std::string sha256;  // for people, other tools and other copies
  std::vector<PieceRecord> pieces;
  std::vector<ShardRecord> shards;

  friend bool operator==(FileRecord const&, FileRecord const&) = default;
};

struct ParameterRecord {
  std::string name;
  std::string dtype;
  std::vector<std::uint64_t> shape;
  std::string metadata;  // JSON text; opaque here

  friend bool operator==(ParameterRecord const&, ParameterRecord const&) = default;
};

struct Manifest {
  std::string format = "chorus-checkpoint/1";
  std::uint64_t number = 0;  // grows from checkpoint to checkpoint
  std::vector<ParameterRecord> parameters;
  std::vector<FileRecord> files;

  friend bool operator==(Manifest const&, Manifest const&) = default;
};

// http::encode and http::decode support FileRecord.

// Writes a JSON object, whose last member is the SHA-256 of all bytes before that member, so that every changed byte is
// detected.
[[nodiscard]] std::string to_text(Manifest const& manifest);
// Errors: bad_manifest.
[[nodiscard]] Result<Manifest> parse_manifest(std::string_view text);

// Checks that the manifest is complete: every array of every parameter covers all of its elements, or none, without a
// gap or an overlap, and "values" exists. Errors: bad_manifest, with the parameter and the elements.
[[nodiscard]] Status check(Manifest const& manifest);

}  // namespace chorus::checkpoints
