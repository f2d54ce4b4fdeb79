#include "worker/parameters/checkpoints/testing/content.hpp"

namespace chorus::checkpoints::testing {
namespace {

std::string window_of(std::uint64_t version, std::uint64_t begin) {
  return "window of " + std::to_string(begin) + " at " + std::to_string(version);
}

}  // namespace

std::vector<std::byte> bytes_of(std::string const& name, std::uint64_t version, std::uint64_t at, std::uint64_t count) {
  std::uint64_t seed = version * 1000003;
  for (auto const c : name) seed = seed * 31 + static_cast<unsigned char>(c);
  std::vector<std::byte> bytes(count);
  for (std::uint64_t i = 0; i < count; ++i)
    bytes[i] = static_cast<std::byte>(((seed + at + i) * 0x9e3779b97f4a7c15u) >> 56);
  return bytes;
}

Result<FileRecord> Content::write_shard(Files& files, std::string const& directory, std::uint64_t number,
                                        std::uint64_t shard, std::uint64_t shards) const {
  auto const first = rows * shard / shards, last = rows * (shard + 1) / shards;
  auto const begin = first * row_elements, end = last * row_elements;
  auto const values = bytes_of("values", version_, begin * 4, (end - begin) * 4);
  auto const momentum = bytes_of("momentum", version_, begin * 4, (end - begin) * 4);
  auto const row_steps = bytes_of("row_steps", version_, first * 8, (last - first) * 8);
  auto const window = window_of(version_, begin);
  auto const bias = bytes_of("bias", version_, 0, bias_elements * 2);
  std::vector<ShardContent> content(1);
  content[0] = {"weights",
                begin,
                end,
                {{"values", Dtype::f32, 1, values},
                 {"momentum", Dtype::f32, 1, momentum},
                 {"row_steps", Dtype::u64, row_elements, row_steps},
                 {"window", Dtype::u8, 0, std::as_bytes(std::span(window))}},
                R"({"version":)" + std::to_string(version_) + "}",
                {last - first, row_elements}};
  if (shard == 0) content.push_back({"bias", 0, bias_elements, {{"values", Dtype::f16, 1, bias}}, "{}", {}});
  return write_file(files, directory, number, "worker-" + std::to_string(shard), content);
}

Manifest Content::manifest(std::uint64_t number, std::vector<FileRecord> records) const {
  Manifest manifest;
  manifest.number = number;
  manifest.parameters = {{"weights", "f32", {rows, row_elements}, R"({"optimizer":{"name":"momentum"}})"},
                         {"bias", "f16", {bias_elements}, "{}"}};
  manifest.files = std::move(records);
  return manifest;
}

Status Content::write(Files& files, std::string const& directory, std::uint64_t number, std::uint64_t shards) const {
  std::vector<FileRecord> records;
  for (std::uint64_t shard = 0; shard < shards; ++shard) {
    auto record = write_shard(files, directory, number, shard, shards);
    if (record.has_error()) return record.error();
    records.push_back(std::move(*record));
  }
  return commit(files, directory, manifest(number, std::move(records)));
}

bool Content::is_in(Checkpoint const& checkpoint, std::uint64_t shards) const {
  auto const holds = [&](std::string const& parameter, std::string const& array, std::uint64_t begin, std::uint64_t end,
                         std::vector<std::byte> const& expected) {
    std::vector<std::byte> found(expected.size());
    return checkpoint.read(parameter, array, begin, end, found).has_value() && found == expected;
  };
  bool same = holds("bias", "values", 0, bias_elements, bytes_of("bias", version_, 0, bias_elements * 2));
  for (std::uint64_t shard = 0; shard < shards; ++shard) {
    auto const first = rows * shard / shards, last = rows * (shard + 1) / shards;
    auto const begin = first * row_elements, end = last * row_elements;
    for (auto const* array : {"values", "momentum"})
      same = same && holds("weights", array, begin, end, bytes_of(array, version_, begin * 4, (end - begin) * 4));
    same = same &&
           holds("weights", "row_steps", begin, end, bytes_of("row_steps", version_, first * 8, (last - first) * 8));
  }
  auto const windows = checkpoint.pieces("weights", "window", 0, rows * row_elements);
  for (auto const& piece : windows) {
    auto const bytes = checkpoint.read_piece(piece);
    auto const expected = window_of(version_, piece.begin);
    auto const wanted = std::as_bytes(std::span(expected));
    same = same && bytes.has_value() && *bytes == std::vector<std::byte>(wanted.begin(), wanted.end());
  }
  return same && !windows.empty();
}

}  // namespace chorus::checkpoints::testing
