// Checkpoints in a directory that exists: DIRECTORY/checkpoint-NUMBER/ holds safetensors files and manifest.json.
//
// Every file is written under a temporary name, synced, renamed, and its directory synced; the manifest last. So a
// crash at any point leaves what was committed before, and a manifest that is there means that all it names is there.
// Several processes may write files of one checkpoint into one directory; one of them commits. All of this blocks: it
// belongs on a thread for such work. The Files outlive whatever was made with them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/core/dtype.hpp"
#include "collectives/core/result.hpp"
#include "worker/parameters/checkpoints/files.hpp"
#include "worker/parameters/checkpoints/manifest.hpp"
#include "worker/parameters/checkpoints/safetensors.hpp"

namespace chorus::checkpoints {

// What a shard gives to a checkpoint. The bytes outlive the call, and nobody changes them during it.
struct ShardArray {
  std::string name;  // "values", or of the optimizer's state, or another
  Dtype dtype = Dtype::f32;
  // Elements of the parameter per element of the array; begin and end of the shard are multiples of it. 0: the array
  // belongs to the shard as a whole, has any length and cannot be cut: rows that exist, deduplication windows.
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

// Writes NAME.safetensors into the checkpoint `number`; writers of one checkpoint have different names. When this has
// returned, the file survives a crash, and nobody sees it before commit. Errors: bad_content, exists, the operating
// system's.
[[nodiscard]] Result<FileRecord> write_file(Files& files, std::string const& directory, std::uint64_t number,
                                            std::string const& name, std::span<ShardContent const> shards);

// Makes it the newest checkpoint. When this has returned, it survives a crash. Errors: bad_manifest (see check),
// exists, the operating system's.
[[nodiscard]] Status commit(Files& files, std::string const& directory, Manifest const& manifest);

// Removes all but the newest `keep` committed checkpoints (at least 1), and what older ones that never were committed
// have left. A crash in between leaves no checkpoint that lacks a file.
[[nodiscard]] Status remove_old(Files& files, std::string const& directory, std::uint64_t keep);

// One more than any that was begun here, 1 in an empty or absent directory.
[[nodiscard]] Result<std::uint64_t> next_number(Files& files, std::string const& directory);

enum class Verify : std::uint8_t { xxh3, sha256 };

// A committed checkpoint, every byte of which has been compared with its digests. Movable, for any number of readers.
class Checkpoint {
 public:
  // Errors: not_found, bad_manifest, damaged with the name of the file.
  [[nodiscard]] static Result<Checkpoint> open(Files& files, std::string const& directory, std::uint64_t number,
                                               Verify verify = Verify::xxh3);

  [[nodiscard]] Manifest const& manifest() const { return manifest_; }
  [[nodiscard]] ParameterRecord const* find(std::string_view parameter) const;
  // The names of a parameter's arrays.
  [[nodiscard]] std::vector<std::string> arrays(std::string_view parameter) const;
  // Of all the shards that were written, those that overlap these elements, in the order of their elements.
  [[nodiscard]] std::vector<ShardRecord> shards(std::string_view parameter, std::uint64_t begin,
                                                std::uint64_t end) const;

  // Of an array, those pieces that overlap these elements, in the order of their elements: for arrays that cannot be
  // cut.
  [[nodiscard]] std::vector<PieceRecord> pieces(std::string_view parameter, std::string_view array, std::uint64_t begin,
                                                std::uint64_t end) const;
  // A piece as it was written. Errors: out_of_range if it is none of this checkpoint, the operating system's.
  [[nodiscard]] Result<std::vector<std::byte>> read_piece(PieceRecord const& piece) const;

  // The array's elements that belong to the parameter's elements from begin to end, from whatever files hold them, into
  // `into`, whose size fits exactly. Errors: out_of_range, the operating system's.
  [[nodiscard]] Status read(std::string_view parameter, std::string_view array, std::uint64_t begin, std::uint64_t end,
                            std::span<std::byte> into) const;

 private:
  // Where a piece lies: in which file of the manifest it is which piece, and its tensor's bytes in that file.
  struct Place {
    std::size_t file, piece;
    std::uint64_t begin, bytes;
  };
  // What belongs to one parameter, so that loading thousands of them does not look at all for each.
  struct Entry {
    std::size_t parameter = 0;  // in the manifest
    std::vector<Place> places;
    std::vector<ShardRecord> shards;
  };

  Checkpoint() = default;
  [[nodiscard]] Status add(std::size_t file, SafetensorsHeader const& header);
  [[nodiscard]] Entry const* entry(std::string_view parameter) const;
  [[nodiscard]] PieceRecord const& piece(Place const& place) const {
    return manifest_.files[place.file].pieces[place.piece];
  }

  Manifest manifest_;
  std::vector<std::unique_ptr<InputFile>> files_;  // as in the manifest
  std::map<std::string, Entry, std::less<>> entries_;
};

// The newest that is good, and why each newer one is not.
struct Newest {
  Checkpoint checkpoint;
  std::vector<Error> refused;
};
// Errors: not_found, with the reasons against those that there are; the operating system's.
[[nodiscard]] Result<Newest> open_newest(Files& files, std::string const& directory, Verify verify = Verify::xxh3);

}  // namespace chorus::checkpoints
