#include "worker/parameters/checkpoints/write.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "worker/parameters/checkpoints/digests.hpp"
#include "worker/parameters/checkpoints/errc.hpp"
#include "worker/parameters/checkpoints/layout.hpp"
#include "worker/parameters/checkpoints/safetensors.hpp"

namespace chorus::checkpoints {
namespace {

constexpr std::size_t write_bytes = std::size_t{1} << 20;  // digested while in the cache, then written

// A tensor of the file.
struct Planned {
  TensorEntry tensor;
  PieceRecord piece;
  std::span<std::byte const> bytes;
};

Error bad_content(std::string detail) { return {CheckpointErrc::bad_content, std::move(detail)}; }

std::uint64_t product(std::vector<std::uint64_t> const& shape) {
  std::uint64_t elements = 1;
  for (auto const dimension : shape)
    if (__builtin_mul_overflow(elements, dimension, &elements)) return ~std::uint64_t{0};
  return elements;
}

Result<Planned> plan(ShardContent const& shard, ShardArray const& array, bool is_only_shard) {
  auto const what = array.name + " of " + shard.parameter;
  auto const bytes_each = element_bytes(array.dtype);
  auto count = array.bytes.size() / bytes_each;
  if (array.elements_each != 0) {
    if (shard.begin % array.elements_each != 0 || shard.end % array.elements_each != 0)
      return bad_content(what + " is cut within " + std::to_string(array.elements_each) + " elements");
    count = (shard.end - shard.begin) / array.elements_each;
  }
  if (array.bytes.size() != count * bytes_each)
    return bad_content(what + " has " + std::to_string(array.bytes.size()) + " bytes for " + std::to_string(count) +
                       " elements");
  // Names of parameters never contain @.
  auto name = shard.parameter;
  if (array.name != values_array) name += "@" + array.name;
  if (!is_only_shard) name += "@" + std::to_string(shard.begin) + "-" + std::to_string(shard.end);
  std::vector<std::uint64_t> shape{count};
  if (array.name == values_array && !shard.shape.empty()) {
    if (product(shard.shape) != count) return bad_content("the shape of " + what + " does not fit its elements");
    shape = shard.shape;
  }
  return Planned{{name, array.dtype, std::move(shape), 0, 0},
                 {shard.parameter, array.name, name, std::string(chorus::name(array.dtype)), shard.begin, shard.end,
                  array.elements_each},
                 array.bytes};
}

Result<std::vector<Planned>> plan_all(std::span<ShardContent const> shards) {
  std::map<std::string_view, std::size_t> occurrences;
  for (auto const& shard : shards) ++occurrences[shard.parameter];
  std::vector<Planned> planned;
  std::set<std::pair<std::string_view, std::uint64_t>> empty;
  for (auto const& shard : shards) {
    if (shard.end < shard.begin) return bad_content("a shard of " + shard.parameter + " ends before it begins");
    // Of empty shards at one place, which have the same name, one is enough.
    if (shard.begin == shard.end && !empty.emplace(shard.parameter, shard.begin).second) continue;
    for (auto const& array : shard.arrays) {
      auto one = plan(shard, array, occurrences[shard.parameter] == 1);
      if (one.has_error()) return one.error();
      planned.push_back(std::move(*one));
    }
  }
  // Tensors with larger elements first, so that every tensor is aligned to its elements.
  std::sort(planned.begin(), planned.end(), [](Planned const& a, Planned const& b) {
    auto const left = element_bytes(a.tensor.dtype), right = element_bytes(b.tensor.dtype);
    return std::tie(right, a.tensor.name) < std::tie(left, b.tensor.name);
  });
  return planned;
}

// Writes bytes and computes their digests.
class DigestedOutput {
 public:
  explicit DigestedOutput(OutputFile& file) : file_(file) {}
  Status write(std::span<std::byte const> bytes) {
    while (!bytes.empty()) {
      auto const part = bytes.first(std::min(bytes.size(), write_bytes));
      digests_.add(part);
      if (auto const written = file_.write(part); written.has_error()) return written;
      written_ += part.size();
      bytes = bytes.subspan(part.size());
    }
    return ok();
  }
  [[nodiscard]] std::uint64_t written() const { return written_; }
  [[nodiscard]] Digests& digests() { return digests_; }

 private:
  OutputFile& file_;
  Digests digests_{true};
  std::uint64_t written_ = 0;
};

Status write_planned(OutputFile& file, std::vector<Planned> const& planned, std::uint64_t number, FileRecord& record) {
  std::vector<TensorEntry> tensors;
  for (auto const& one : planned) tensors.push_back(one.tensor);
  auto const header = make_safetensors_header(tensors, {{"chorus_checkpoint", std::to_string(number)}});
  if (header.has_error()) return header.error();
  DigestedOutput output(file);
  if (auto const written = output.write(std::as_bytes(std::span(*header))); written.has_error()) return written;
  for (auto const& one : planned)
    if (auto const written = output.write(one.bytes); written.has_error()) return written;
  record.bytes = output.written();
  record.xxh3 = output.digests().xxh3();
  record.sha256 = output.digests().sha256();
  return file.sync();
}

// Writes a file that appears under its name only when it is complete on the disk. It stays open until then, so that
// remove_abandoned() leaves it. After an error no file is left.
template <class Write>
Status write_durably(Files& files, std::string const& directory, std::string const& name, Write const& write) {
  auto const path = join(directory, name);
  auto const temporary = path + std::string(temporary_suffix);
  auto const file = files.create(temporary);
  if (file.has_error()) return file.error();
  auto status = write(**file);
  if (status.has_value()) status = files.rename(temporary, path);
  auto const& present = status.has_value() ? path : temporary;
  if (status.has_value()) status = files.sync_directory(directory);
  if (status.has_error()) static_cast<void>(files.remove(present));
  return status;
}

constexpr int directory_tries = 3;

Status make_directories(Files& files, std::string const& directory, std::string const& own) {
  if (auto status = files.make_directory(directory); status.has_error()) return status;
  return files.make_directory(own);
}

Status refuse_committed(Files& files, std::string const& own, std::uint64_t number) {
  auto const committed = is_committed(files, own);
  if (committed.has_error()) return committed.error();
  if (*committed) return Error(CheckpointErrc::exists, "checkpoint " + std::to_string(number) + " has been committed");
  return ok();
}

// Removes the manifest first: without it the rest is no checkpoint, which could lack a file.
Status remove_checkpoint(Files& files, std::string const& directory, std::uint64_t number, bool is_whole) {
  auto const own = join(directory, directory_name(number));
  if (is_whole) {
    if (auto const removed = files.remove(join(own, manifest_name)); removed.has_error()) return removed;
    if (auto const synced = files.sync_directory(own); synced.has_error()) return synced;
  }
  auto const names = files.list(own);
  if (names.has_error()) return names.error();
  for (auto const& name : *names)
    if (auto const removed = files.remove(join(own, name)); removed.has_error()) return removed;
  return files.remove_directory(own);
}

}  // namespace

Result<FileRecord> write_file(Files& files, std::string const& directory, std::uint64_t number, std::string const& name,
                              std::span<ShardContent const> shards) {
  FileRecord record;
  record.name = name + ".safetensors";
  if (!is_plain_name(record.name)) return bad_content("a file cannot be called that");
  auto const planned = plan_all(shards);
  if (planned.has_error()) return planned.error();
  for (auto const& one : *planned) record.pieces.push_back(one.piece);
  for (auto const& shard : shards) record.shards.push_back({shard.parameter, shard.begin, shard.end, shard.metadata});

  auto const own = join(directory, directory_name(number));
  Status written = ok();
  // Who cleans up meanwhile removes directories that are empty.
  for (int tries = 0; tries < directory_tries && (tries == 0 || is_missing(written.error())); ++tries) {
    written = make_directories(files, directory, own);
    if (written.has_error()) continue;
    if (auto const free = refuse_committed(files, own, number); free.has_error()) return free.error();
    written = write_durably(files, own, record.name,
                            [&](OutputFile& file) { return write_planned(file, *planned, number, record); });
    if (written.has_value()) break;
  }
  if (written.has_error()) {
    remove_if_empty(files, own);
    return written.error();
  }
  return record;
}

Status commit(Files& files, std::string const& directory, Manifest const& manifest) {
  if (auto const checked = check(manifest); checked.has_error()) return checked;
  auto const own = join(directory, directory_name(manifest.number));
  if (auto const made = files.make_directory(own); made.has_error()) return made;
  if (auto const free = refuse_committed(files, own, manifest.number); free.has_error()) return free;
  for (auto const& record : manifest.files) {
    auto const file = files.open(join(own, record.name));
    if (file.has_error()) return file.error();
    if ((*file)->size() != record.bytes)
      return Error(CheckpointErrc::damaged, record.name + " has " + std::to_string((*file)->size()) +
                                                " bytes, the manifest says " + std::to_string(record.bytes));
  }
  // Syncs the entries of the directories before that of the manifest.
  if (auto const synced = sync_entry_of(files, directory); synced.has_error()) return synced;
  if (auto const synced = files.sync_directory(directory); synced.has_error()) return synced;
  auto const text = to_text(manifest);
  return write_durably(files, own, std::string(manifest_name), [&](OutputFile& file) -> Status {
    if (auto const written = file.write(std::as_bytes(std::span(text))); written.has_error()) return written;
    return file.sync();
  });
}

Status remove_old(Files& files, std::string const& directory, std::uint64_t keep) {
  auto const numbers = list_numbers(files, directory);
  if (numbers.has_error()) return numbers.error();
  std::uint64_t kept = 0;
  bool removed_any = false;
  for (auto const number : *numbers) {
    auto const whole = is_committed(files, join(directory, directory_name(number)));
    if (whole.has_error()) return whole.error();
    if (*whole && kept < std::max<std::uint64_t>(keep, 1)) {
      ++kept;
      continue;
    }
    if (kept == 0) continue;  // newer than every committed checkpoint: it is being written
    if (auto const removed = remove_checkpoint(files, directory, number, *whole); removed.has_error()) return removed;
    removed_any = true;
  }
  return removed_any ? files.sync_directory(directory) : ok();
}

Result<std::uint64_t> next_number(Files& files, std::string const& directory) {
  auto const numbers = list_numbers(files, directory);
  if (numbers.has_error()) return numbers.error();
  return numbers->empty() ? 1 : numbers->front() + 1;
}

}  // namespace chorus::checkpoints
