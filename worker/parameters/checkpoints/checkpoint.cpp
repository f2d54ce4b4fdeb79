#include "worker/parameters/checkpoints/checkpoint.hpp"

#include <algorithm>
#include <tuple>
#include <unordered_map>

#include "worker/parameters/checkpoints/digests.hpp"
#include "worker/parameters/checkpoints/errc.hpp"
#include "worker/parameters/checkpoints/layout.hpp"

namespace chorus::checkpoints {
namespace {

constexpr std::size_t read_bytes = std::size_t{1} << 20;
constexpr std::uint64_t manifest_bytes_max = std::uint64_t{1} << 30;

Error damaged(std::string const& file, std::string_view why) {
  return {CheckpointErrc::damaged, file + " " + std::string(why)};
}

Result<Manifest> read_manifest(Files& files, std::string const& own) {
  auto const path = join(own, manifest_name);
  auto const file = files.open(path);
  if (file.has_error() && is_missing(file.error())) return Error(CheckpointErrc::not_found, "there is no " + path);
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

Status compare_digests(InputFile const& file, FileRecord const& record, Verify verify) {
  if (file.size() != record.bytes)
    return damaged(record.name, "has " + std::to_string(file.size()) + " bytes, the manifest says " +
                                    std::to_string(record.bytes));
  Digests digests(verify == Verify::sha256);
  std::vector<std::byte> buffer(std::min<std::uint64_t>(read_bytes, record.bytes));
  for (std::uint64_t at = 0; at < record.bytes; at += buffer.size()) {
    auto const part = std::span(buffer).first(std::min<std::uint64_t>(buffer.size(), record.bytes - at));
    if (auto const read = file.read(at, part); read.has_error()) return read;
    digests.add(part);
  }
  if (digests.xxh3() != record.xxh3) return damaged(record.name, "is not what its digest says (xxh3)");
  if (verify == Verify::sha256 && digests.sha256() != record.sha256)
    return damaged(record.name, "is not what its digest says (sha256)");
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

// That the tensors are those of which the manifest speaks.
Status match(FileRecord const& record, SafetensorsHeader const& header) {
  std::unordered_map<std::string_view, TensorEntry const*> tensors;
  for (auto const& tensor : header.tensors) tensors[tensor.name] = &tensor;
  for (auto const& piece : record.pieces) {
    auto const found = tensors.find(piece.tensor);
    if (found == tensors.end()) return damaged(record.name, "has no tensor " + piece.tensor);
    auto const& tensor = *found->second;
    auto const bytes_each = element_bytes(tensor.dtype);
    auto const fits = piece.elements_each == 0 ||
                      (tensor.end - tensor.begin) / bytes_each == (piece.end - piece.begin) / piece.elements_each;
    if (name(tensor.dtype) != piece.dtype || !fits)
      return damaged(record.name, "has a tensor " + piece.tensor + " of another dtype or size");
  }
  return ok();
}

bool overlaps(std::uint64_t begin, std::uint64_t end, std::uint64_t other_begin, std::uint64_t other_end) {
  return begin < other_end && other_begin < end;
}

template <class Record>
void sort_by_elements(std::vector<Record>& records) {
  std::sort(records.begin(), records.end(), [](Record const& a, Record const& b) {
    return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
  });
}

}  // namespace

Result<Checkpoint> Checkpoint::open(Files& files, std::string const& directory, std::uint64_t number, Verify verify) {
  auto const own = join(directory, directory_name(number));
  auto manifest = read_manifest(files, own);
  if (manifest.has_error()) return manifest.error();
  if (manifest->number != number)
    return Error(CheckpointErrc::bad_manifest, own + " holds checkpoint " + std::to_string(manifest->number));
  Checkpoint checkpoint;
  for (auto const& record : manifest->files) {
    auto const path = join(own, record.name);
    auto file = files.open(path);
    if (file.has_error() && is_missing(file.error())) return damaged(path, "is missing");
    if (file.has_error()) return file.error();
    auto const compared = compare_digests(**file, record, verify);
    if (compared.has_error()) return Error(compared.error().code, own + ": " + compared.error().detail);
    auto header = read_header(**file, path);
    if (header.has_error()) return header.error();
    if (auto const matched = match(record, *header); matched.has_error()) return matched.error();
    checkpoint.files_.push_back({std::move(*file), std::move(*header)});
  }
  checkpoint.manifest_ = std::move(*manifest);
  return checkpoint;
}

ParameterRecord const* Checkpoint::find(std::string_view parameter) const {
  auto const& all = manifest_.parameters;
  auto const found = std::find_if(all.begin(), all.end(), [&](auto const& record) { return record.name == parameter; });
  return found == all.end() ? nullptr : &*found;
}

std::vector<std::string> Checkpoint::arrays(std::string_view parameter) const {
  std::vector<std::string> names;
  for (auto const& file : manifest_.files)
    for (auto const& piece : file.pieces)
      if (piece.parameter == parameter) names.push_back(piece.array);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::vector<ShardRecord> Checkpoint::shards(std::string_view parameter, std::uint64_t begin, std::uint64_t end) const {
  std::vector<ShardRecord> found;
  for (auto const& file : manifest_.files)
    for (auto const& shard : file.shards)
      if (shard.parameter == parameter && overlaps(shard.begin, shard.end, begin, end)) found.push_back(shard);
  sort_by_elements(found);
  return found;
}

std::vector<PieceRecord> Checkpoint::pieces(std::string_view parameter, std::string_view array, std::uint64_t begin,
                                            std::uint64_t end) const {
  std::vector<PieceRecord> found;
  for (auto const& file : manifest_.files)
    for (auto const& piece : file.pieces)
      if (piece.parameter == parameter && piece.array == array && overlaps(piece.begin, piece.end, begin, end))
        found.push_back(piece);
  sort_by_elements(found);
  return found;
}

Result<std::vector<std::byte>> Checkpoint::read_piece(PieceRecord const& wanted) const {
  for (std::size_t i = 0; i < files_.size(); ++i) {
    auto const& pieces = manifest_.files[i].pieces;
    if (std::find(pieces.begin(), pieces.end(), wanted) == pieces.end()) continue;
    auto const& header = files_[i].header;
    auto const* const tensor = header.find(wanted.tensor);
    std::vector<std::byte> bytes(tensor->end - tensor->begin);
    if (auto const read = files_[i].file->read(header.data_begin + tensor->begin, bytes); read.has_error())
      return read.error();
    return bytes;
  }
  return Error(CheckpointErrc::out_of_range, "there is no such piece of " + wanted.parameter);
}

Status Checkpoint::read(std::string_view parameter, std::string_view array, std::uint64_t begin, std::uint64_t end,
                        std::span<std::byte> into) const {
  auto const what = std::string(array) + " of " + std::string(parameter);
  auto const range = "elements " + std::to_string(begin) + " to " + std::to_string(end) + " of " + what;
  std::uint64_t copied = 0;  // bytes
  std::uint64_t wanted = 0;
  for (std::size_t i = 0; i < files_.size(); ++i)
    for (auto const& piece : manifest_.files[i].pieces) {
      if (piece.parameter != parameter || piece.array != array || !overlaps(piece.begin, piece.end, begin, end)) continue;
      auto const each = piece.elements_each;
      if (each == 0) return Error(CheckpointErrc::out_of_range, what + " cannot be cut: it is read piece by piece");
      if (begin % each != 0 || end % each != 0)
        return Error(CheckpointErrc::out_of_range, range + ": they are " + std::to_string(each) + " by " +
                                                       std::to_string(each));
      auto const bytes_each = element_bytes(*parse_dtype(piece.dtype));
      wanted = (end - begin) / each * bytes_each;
      if (into.size() != wanted)
        return Error(CheckpointErrc::out_of_range,
                     range + " have " + std::to_string(wanted) + " bytes, not " + std::to_string(into.size()));
      auto const from = std::max(begin, piece.begin), to = std::min(end, piece.end);
      auto const target = into.subspan((from - begin) / each * bytes_each, (to - from) / each * bytes_each);
      auto const& header = files_[i].header;
      auto const at = header.data_begin + header.find(piece.tensor)->begin + (from - piece.begin) / each * bytes_each;
      if (auto const read = files_[i].file->read(at, target); read.has_error()) return read;
      copied += target.size();
    }
  if (copied != wanted || copied != into.size()) return Error(CheckpointErrc::out_of_range, "there are no " + range);
  return ok();
}

Result<Newest> open_newest(Files& files, std::string const& directory, Verify verify) {
  auto const numbers = list_numbers(files, directory);
  if (numbers.has_error()) return numbers.error();
  std::vector<Error> refused;
  for (auto const number : *numbers) {
    auto checkpoint = Checkpoint::open(files, directory, number, verify);
    if (checkpoint.has_value()) return Newest{std::move(*checkpoint), std::move(refused)};
    // One without a manifest was never committed.
    if (checkpoint.error().code != CheckpointErrc::not_found) refused.push_back(checkpoint.error());
  }
  std::string why;
  for (auto const& error : refused) why += "; " + error.detail;
  return Error(CheckpointErrc::not_found, "there is no good checkpoint in " + directory + why);
}

}  // namespace chorus::checkpoints
