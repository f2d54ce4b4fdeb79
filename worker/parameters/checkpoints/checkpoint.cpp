#include "worker/parameters/checkpoints/checkpoint.hpp"

#include <algorithm>
#include <tuple>
#include <unordered_map>

#include "worker/parameters/checkpoints/digests.hpp"
#include "worker/parameters/checkpoints/errc.hpp"
#include "worker/parameters/checkpoints/layout.hpp"
#include "worker/parameters/checkpoints/safetensors_parse.hpp"

namespace chorus::checkpoints {
namespace {

constexpr std::size_t read_bytes = std::size_t{1} << 20;
constexpr std::uint64_t manifest_bytes_max = std::uint64_t{1} << 30;

Error damaged(std::string const& file, std::string_view why) {
  return {CheckpointErrc::damaged, file + " " + std::string(why)};
}

bool is_no_file(Error const& error) { return error.code == std::errc::invalid_argument; }

Result<Manifest> read_manifest(Files& files, std::string const& own) {
  auto const path = join(own, manifest_name);
  auto const file = files.open(path);
  if (file.has_error() && is_missing(file.error())) return Error(CheckpointErrc::not_found, "there is no " + path);
  if (file.has_error() && is_no_file(file.error())) return Error(CheckpointErrc::bad_manifest, file.error().detail);
  if (file.has_error()) return file.error();
  if ((*file)->size() > manifest_bytes_max) return Error(CheckpointErrc::bad_manifest, path + " is too large");
  std::string text((*file)->size(), '\0');
  if (auto const read = (*file)->read(0, std::as_writable_bytes(std::span(text))); read.has_error())
    return read.error();
  auto manifest = parse_manifest(text);
  if (manifest.has_error()) return Error(manifest.error().code, path + ": " + manifest.error().detail);
  if (auto const checked = check(*manifest); checked.has_error())
    return Error(checked.error().code, path + ": " + checked.error().detail);
  return manifest;
}

Status compare_digests(InputFile const& file, std::string const& path, FileRecord const& record, Verify verify) {
  if (file.size() != record.bytes)
    return damaged(path,
                   "has " + std::to_string(file.size()) + " bytes, the manifest says " + std::to_string(record.bytes));
  Digests digests(verify == Verify::sha256);
  std::vector<std::byte> buffer(std::min<std::uint64_t>(read_bytes, record.bytes));
  for (std::uint64_t at = 0; at < record.bytes; at += buffer.size()) {
    auto const part = std::span(buffer).first(std::min<std::uint64_t>(buffer.size(), record.bytes - at));
    if (auto const read = file.read(at, part); read.has_error()) return read;
    digests.add(part);
  }
  if (digests.xxh3() != record.xxh3) return damaged(path, "is not what its digest says (xxh3)");
  if (verify == Verify::sha256 && digests.sha256() != record.sha256)
    return damaged(path, "is not what its digest says (sha256)");
  return ok();
}

Result<SafetensorsHeader> read_header(InputFile const& file, std::string const& name) {
  std::vector<std::byte> prefix(std::min<std::uint64_t>(safetensors_prefix, file.size()));
  if (auto const read = file.read(0, prefix); read.has_error()) return read.error();
  auto const bytes = safetensors_header_bytes(prefix, file.size());
  if (bytes.has_error()) return Error(bytes.error().code, name + ": " + bytes.error().detail);
  std::string text(*bytes, '\0');
  if (auto const read = file.read(safetensors_prefix, std::as_writable_bytes(std::span(text))); read.has_error())
    return read.error();
  auto header = parse_safetensors(text, file.size());
  if (header.has_error()) return Error(header.error().code, name + ": " + header.error().detail);
  return header;
}

// An empty range has something in common only with empty ranges at its place.
bool overlaps(std::uint64_t begin, std::uint64_t end, std::uint64_t other_begin, std::uint64_t other_end) {
  if (begin == end || other_begin == other_end) return begin == other_begin && end == other_end;
  return begin < other_end && other_begin < end;
}

template <class Record>
void sort_by_elements(std::vector<Record>& records) {
  std::sort(records.begin(), records.end(),
            [](Record const& a, Record const& b) { return std::tie(a.begin, a.end) < std::tie(b.begin, b.end); });
}

}  // namespace

Result<Checkpoint> Checkpoint::open(Files& files, std::string const& directory, std::uint64_t number, Verify verify) {
  auto const own = join(directory, directory_name(number));
  auto manifest = read_manifest(files, own);
  if (manifest.has_error()) return manifest.error();
  if (manifest->number != number)
    return Error(CheckpointErrc::bad_manifest, own + " holds checkpoint " + std::to_string(manifest->number));
  Checkpoint checkpoint;
  checkpoint.manifest_ = std::move(*manifest);
  auto const& parameters = checkpoint.manifest_.parameters;
  for (std::size_t i = 0; i < parameters.size(); ++i) checkpoint.entries_[parameters[i].name].parameter = i;
  for (std::size_t i = 0; i < checkpoint.manifest_.files.size(); ++i) {
    auto const& record = checkpoint.manifest_.files[i];
    auto const path = join(own, record.name);
    auto file = files.open(path);
    if (file.has_error() && is_missing(file.error())) return damaged(path, "is missing");
    if (file.has_error() && is_no_file(file.error())) return Error(CheckpointErrc::damaged, file.error().detail);
    if (file.has_error()) return file.error();
    if (auto const same = compare_digests(**file, path, record, verify); same.has_error()) return same.error();
    auto const header = read_header(**file, path);
    if (header.has_error()) return header.error();
    if (auto const added = checkpoint.add(i, *header); added.has_error()) return added.error();
    checkpoint.files_.push_back(std::move(*file));
  }
  return checkpoint;
}

// Records the places of a file's pieces, and checks that its tensors are those of the manifest.
Status Checkpoint::add(std::size_t file, SafetensorsHeader const& header) {
  auto const& record = manifest_.files[file];
  std::unordered_map<std::string_view, TensorEntry const*> tensors;
  for (auto const& tensor : header.tensors) tensors[tensor.name] = &tensor;
  for (std::size_t i = 0; i < record.pieces.size(); ++i) {
    auto const& piece = record.pieces[i];
    auto const found = tensors.find(piece.tensor);
    if (found == tensors.end()) return damaged(record.name, "has no tensor " + piece.tensor);
    auto const& tensor = *found->second;
    auto const elements = (tensor.end - tensor.begin) / element_bytes(tensor.dtype);
    bool const fits = piece.elements_each == 0 || elements == (piece.end - piece.begin) / piece.elements_each;
    if (name(tensor.dtype) != piece.dtype || !fits)
      return damaged(record.name, "has a tensor " + piece.tensor + " of another dtype or size");
    entries_[piece.parameter].places.push_back({file, i, header.data_begin + tensor.begin, tensor.end - tensor.begin});
  }
  for (auto const& shard : record.shards) entries_[shard.parameter].shards.push_back(shard);
  return ok();
}

Checkpoint::Entry const* Checkpoint::entry(std::string_view parameter) const {
  auto const found = entries_.find(parameter);
  return found == entries_.end() ? nullptr : &found->second;
}

ParameterRecord const* Checkpoint::find(std::string_view parameter) const {
  auto const* const found = entry(parameter);
  return found == nullptr ? nullptr : &manifest_.parameters[found->parameter];
}

std::vector<std::string> Checkpoint::arrays(std::string_view parameter) const {
  std::vector<std::string> names;
  auto const* const found = entry(parameter);
  if (found == nullptr) return names;
  for (auto const& place : found->places) names.push_back(piece(place).array);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::vector<ShardRecord> Checkpoint::shards(std::string_view parameter, std::uint64_t begin, std::uint64_t end) const {
  std::vector<ShardRecord> overlapping;
  auto const* const found = entry(parameter);
  if (found == nullptr) return overlapping;
  for (auto const& shard : found->shards)
    if (overlaps(shard.begin, shard.end, begin, end)) overlapping.push_back(shard);
  sort_by_elements(overlapping);
  return overlapping;
}

std::vector<PieceRecord> Checkpoint::pieces(std::string_view parameter, std::string_view array, std::uint64_t begin,
                                            std::uint64_t end) const {
  std::vector<PieceRecord> overlapping;
  auto const* const found = entry(parameter);
  if (found == nullptr) return overlapping;
  for (auto const& place : found->places) {
    auto const& candidate = piece(place);
    if (candidate.array == array && overlaps(candidate.begin, candidate.end, begin, end))
      overlapping.push_back(candidate);
  }
  sort_by_elements(overlapping);
  return overlapping;
}

Result<std::vector<std::byte>> Checkpoint::read_piece(PieceRecord const& wanted) const {
  auto const* const found = entry(wanted.parameter);
  if (found != nullptr)
    for (auto const& place : found->places) {
      if (piece(place) != wanted) continue;
      std::vector<std::byte> bytes(place.bytes);
      if (auto const read = files_[place.file]->read(place.begin, bytes); read.has_error()) return read.error();
      return bytes;
    }
  return Error(CheckpointErrc::out_of_range, "there is no such piece of " + wanted.parameter);
}

Status Checkpoint::read(std::string_view parameter, std::string_view array, std::uint64_t begin, std::uint64_t end,
                        std::span<std::byte> into) const {
  auto const range = "elements " + std::to_string(begin) + " to " + std::to_string(end) + " of " + std::string(array) +
                     " of " + std::string(parameter);
  auto const refuse = [&](std::string const& why) { return Error(CheckpointErrc::out_of_range, range + why); };
  auto const* const found = entry(parameter);
  if (found == nullptr) return refuse(" are not there");
  std::uint64_t copied = 0;  // bytes
  for (auto const& place : found->places) {
    auto const& source = piece(place);
    if (source.array != array || !overlaps(source.begin, source.end, begin, end)) continue;
    auto const each = source.elements_each;
    if (each == 0) return refuse(": the array cannot be cut, it is read piece by piece");
    if (begin % each != 0 || end % each != 0) return refuse(": they are not cut within " + std::to_string(each));
    auto const bytes_each = element_bytes(*parse_dtype(source.dtype));
    if (into.size() != (end - begin) / each * bytes_each)
      return refuse(" are not " + std::to_string(into.size()) + " bytes");
    auto const from = std::max(begin, source.begin), to = std::min(end, source.end);
    auto const target = into.subspan((from - begin) / each * bytes_each, (to - from) / each * bytes_each);
    auto const at = place.begin + (from - source.begin) / each * bytes_each;
    if (auto const read = files_[place.file]->read(at, target); read.has_error()) return read;
    copied += target.size();
  }
  if (copied != into.size()) return refuse(" are not there");
  return ok();
}

Result<Newest> open_newest(Files& files, std::string const& directory, Verify verify) {
  auto const numbers = list_numbers(files, directory);
  if (numbers.has_error()) return numbers.error();
  std::vector<Error> refused;
  for (auto const number : *numbers) {
    auto checkpoint = Checkpoint::open(files, directory, number, verify);
    if (checkpoint.has_value()) return Newest{std::move(*checkpoint), std::move(refused)};
    // A checkpoint without a manifest was never committed.
    if (checkpoint.error().code != CheckpointErrc::not_found) refused.push_back(checkpoint.error());
  }
  std::string why;
  for (auto const& error : refused) why += "; " + error.detail;
  return Error(CheckpointErrc::not_found, "there is no good checkpoint in " + directory + why);
}

}  // namespace chorus::checkpoints
