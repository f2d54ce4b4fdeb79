// Reads checkpoints in a directory that exists: DIRECTORY/checkpoint-NUMBER/ holds safetensors files and manifest.json.
//
// Every file is written under a temporary name, synced, renamed, and its directory synced; the manifest comes last. So
// a crash at any point leaves all committed checkpoints, and a manifest exists only if all its files exist. Several
// processes may write files of one checkpoint into one directory; one of them commits. All functions block: call them
// on a thread for such work. The Files outlive all objects that were made with them.
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

#include "collectives/core/result.hpp"
#include "worker/parameters/checkpoints/files.hpp"
#include "worker/parameters/checkpoints/manifest.hpp"
#include "worker/parameters/checkpoints/safetensors.hpp"

namespace chorus::checkpoints {

enum class Verify : std::uint8_t { xxh3, sha256 };

// A committed checkpoint, whose bytes have been checked against its digests. Movable; for any number of readers.
class Checkpoint {
 public:
  // Errors: not_found, bad_manifest, damaged with the name of the file.
  [[nodiscard]] static Result<Checkpoint> open(Files& files, std::string const& directory, std::uint64_t number,
                                               Verify verify = Verify::xxh3);

  [[nodiscard]] Manifest const& manifest() const { return manifest_; }
  [[nodiscard]] ParameterRecord const* find(std::string_view parameter) const;
  // Returns the names of a parameter's arrays.
  [[nodiscard]] std::vector<std::string> arrays(std::string_view parameter) const;
  // Returns the records of written shards that overlap these elements, in the order of their elements.
  [[nodiscard]] std::vector<ShardRecord> shards(std::string_view parameter, std::uint64_t begin,
                                                std::uint64_t end) const;

  // Returns the pieces of an array that overlap these elements, in order. For arrays that cannot be split.
  [[nodiscard]] std::vector<PieceRecord> pieces(std::string_view parameter, std::string_view array, std::uint64_t begin,
                                                std::uint64_t end) const;
  // Reads a whole piece. Errors: out_of_range if the piece is not of this checkpoint, the operating system's.
  [[nodiscard]] Result<std::vector<std::byte>> read_piece(PieceRecord const& piece) const;

  // Reads the array's elements for the parameter's elements from begin to end, from all files that hold them, into
  // `into`, which has exactly their size. Errors: out_of_range, the operating system's.
  [[nodiscard]] Status read(std::string_view parameter, std::string_view array, std::uint64_t begin, std::uint64_t end,
                            std::span<std::byte> into) const;

 private:
  // The place of a piece: indexes in the manifest, and its tensor's bytes in the file.
  struct Place {
    std::size_t file, piece;
    std::uint64_t begin, bytes;
  };
  // The index of one parameter, so that loading thousands of parameters takes no search through all pieces.
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
  std::vector<std::unique_ptr<InputFile>> files_;  // in the manifest's order
  std::map<std::string, Entry, std::less<>> entries_;
};

// The newest good checkpoint, and an error for each newer one that is not good.
struct Newest {
  Checkpoint checkpoint;
  std::vector<Error> refused;
};
// Errors: not_found, with the errors of all existing checkpoints; the operating system's.
[[nodiscard]] Result<Newest> open_newest(Files& files, std::string const& directory, Verify verify = Verify::xxh3);

}  // namespace chorus::checkpoints
