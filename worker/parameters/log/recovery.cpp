#include "worker/parameters/log/recovery.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>

#include "http/api/cluster/membership.hpp"
#include "http/api/parameters/push_log.hpp"
#include "http/json/json.hpp"
#include "worker/parameters/checkpoints/layout.hpp"
#include "worker/parameters/log/format.hpp"

namespace chorus::parameters {
namespace {

using checkpoints::InputFile;
using log_format::BaseHead;
using log_format::EntryHead;

constexpr std::uint32_t text_bytes_max = 64 << 20;

Error damaged(std::string const& path, std::uint64_t at, std::string const& why) {
  return {LogErrc::damaged, path + ", byte " + std::to_string(at) + ": " + why};
}

std::optional<PushKind> kind_of(std::string_view name) {
  auto const found = std::ranges::find(push_kind_names, name);
  if (found == std::end(push_kind_names)) return std::nullopt;
  return static_cast<PushKind>(found - std::begin(push_kind_names));
}

// Returns nothing if the text is not that of a logged push.
std::optional<Push> push_of(std::string const& text, std::shared_ptr<tensors::Block> data) {
  auto const logged = http::decode<api::LoggedPush>(text, http::UnknownFields::ignore);
  if (!logged) return std::nullopt;
  auto const kind = kind_of(logged->kind);
  auto const dtype = parse_dtype(logged->dtype);
  auto const incarnation = api::from_hex(logged->incarnation);
  if (!kind || !dtype || !incarnation) return std::nullopt;
  Push push;
  push.kind = *kind;
  push.client = {logged->client, *incarnation};
  push.sequence = logged->sequence;
  push.clock = logged->clock;
  push.dtype = *dtype;
  push.rows = logged->rows;
  if (logged->norm_bits) push.norm = std::bit_cast<double>(*logged->norm_bits);
  push.clients = logged->clients;
  push.data = std::move(data);
  return push;
}

Result<std::uint64_t> digest_behind(InputFile const& file, std::uint64_t at) {
  std::vector<std::byte> piece(1 << 20);
  log_format::Digest digest;
  while (at < file.size()) {
    auto const bytes = std::span(piece).first(std::min<std::uint64_t>(piece.size(), file.size() - at));
    if (auto status = file.read(at, bytes); !status) return status.error();
    digest.add(bytes);
    at += bytes.size();
  }
  return digest.value();
}

Result<std::unique_ptr<Shard>> read_base(InputFile const& file, std::string const& path, ShardSpec spec,
                                         ShardMemory memory) {
  BaseHead head;
  if (file.size() < sizeof head) return damaged(path, 0, "it is too short");
  if (auto status = file.read(0, std::as_writable_bytes(std::span(&head, 1))); !status) return status.error();
  if (head.magic != log_format::base_magic || head.head != log_format::digest_of_head(head))
    return damaged(path, 0, "the header is not what was written");
  auto const left = file.size() - sizeof head;
  if (head.text_bytes > text_bytes_max || head.text_bytes > left || head.data_bytes != left - head.text_bytes)
    return damaged(path, 0, "it does not have the length that it says");
  auto const digest = digest_behind(file, sizeof head);
  if (!digest) return digest.error();
  if (*digest != head.content) return damaged(path, sizeof head, "the content is not what was written");
  std::string text(head.text_bytes, '\0');
  if (auto status = file.read(sizeof head, std::as_writable_bytes(std::span(text))); !status) return status.error();
  auto const base = http::decode<api::LogBase>(text, http::UnknownFields::ignore);
  if (!base) return damaged(path, sizeof head, base.error().detail);
  if (base->parameter != spec.parameter || base->begin != spec.begin || base->end != spec.end ||
      base->dtype != name(spec.dtype))
    return Error(LogErrc::misfit, path + " is of elements " + std::to_string(base->begin) + " to " +
                                      std::to_string(base->end) + " of " + base->parameter + ", " + base->dtype);
  auto shard = Shard::make(std::move(spec), memory, Shard::Content::to_come);
  if (!shard) return shard.error();
  auto at = sizeof head + text.size();
  for (auto const& array : base->arrays) {
    auto const place = (*shard)->place_for(array.name, array.bytes);
    if (place.size() != array.bytes || array.bytes > file.size() - at)
      return Error(LogErrc::misfit, path + ": array " + array.name + " does not fit the parameter");
    if (auto status = file.read(at, place); !status) return status.error();
    at += array.bytes;
  }
  if (auto settled = (*shard)->settle(); !settled) return settled.error();
  if (!(*shard)->restore(base->state)) return Error(LogErrc::misfit, path + ": the state does not fit the parameter");
  return std::move(*shard);
}

struct Entry {
  std::uint64_t at = 0;
  EntryHead head;
  std::string text;
  std::shared_ptr<tensors::Block> data;
};

// Reads a log from its beginning. An invalid entry after the last commit ends the log, because it was never
// acknowledged. Before the last commit it is damage.
class Reader {
 public:
  Reader(InputFile const& file, std::string path, tensors::Pool& pool)
      : file_(file), path_(std::move(path)), pool_(pool) {}

  [[nodiscard]] Status find_last_commit() {
    // Searches backwards, because only entries that were being written follow the last commit.
    constexpr std::uint64_t window = 1 << 20;
    for (auto end = file_.size(); end >= sizeof(EntryHead);) {
      auto const begin = end > window ? end - window : 0;
      std::vector<std::byte> bytes(end - begin);
      if (auto status = file_.read(begin, bytes); !status) return status;
      for (auto i = bytes.size() - sizeof(EntryHead) + 1; i-- > 0;) {
        EntryHead head;
        std::memcpy(&head, bytes.data() + i, sizeof head);
        if (head.magic != log_format::commit_magic || head.head != log_format::digest_of_head(head)) continue;
        committed_ = begin + i;
        return ok();
      }
      if (begin == 0) return ok();
      end = begin + sizeof(EntryHead) - 1;
    }
    return ok();
  }

  // The next push; nothing at the end.
  [[nodiscard]] Result<std::optional<Entry>> next() {
    while (at_ < file_.size()) {
      auto entry = Entry();
      entry.at = at_;
      if (file_.size() - at_ < sizeof entry.head) return ended("an entry is cut off");
      if (auto status = file_.read(at_, std::as_writable_bytes(std::span(&entry.head, 1))); !status)
        return status.error();
      auto const& head = entry.head;
      auto const is_commit = head.magic == log_format::commit_magic;
      if ((!is_commit && head.magic != log_format::push_magic) || head.head != log_format::digest_of_head(head))
        return ended("the header of an entry is not what was written");
      at_ += sizeof head;
      if (is_commit) continue;
      auto const left = file_.size() - at_;
      if (head.text_bytes > text_bytes_max || head.text_bytes > left || head.data_bytes > left - head.text_bytes)
        return ended("an entry is cut off");
      entry.text.resize(head.text_bytes);
      if (auto status = file_.read(at_, std::as_writable_bytes(std::span(entry.text))); !status) return status.error();
      auto block = pool_.acquire(head.data_bytes);
      if (!block) return block.error();
      if (auto status = file_.read(at_ + head.text_bytes, (*block)->bytes()); !status) return status.error();
      log_format::Digest digest;
      digest.add(std::as_bytes(std::span(entry.text)));
      digest.add((*block)->bytes());
      if (digest.value() != head.content) return ended("the push is not what was written");
      at_ += head.text_bytes + head.data_bytes;
      entry.data = std::move(*block);
      return std::optional(std::move(entry));
    }
    return std::optional<Entry>();
  }

  [[nodiscard]] std::string const& path() const { return path_; }

 private:
  [[nodiscard]] Result<std::optional<Entry>> ended(std::string const& why) const {
    if (committed_ && at_ <= *committed_) return damaged(path_, at_, why);
    return std::optional<Entry>();
  }

  InputFile const& file_;
  std::string const path_;
  tensors::Pool& pool_;
  std::uint64_t at_ = 0;
  std::optional<std::uint64_t> committed_;  // offset of the last commit
};

Status replay(Reader& reader, Shard& shard) {
  if (auto status = reader.find_last_commit(); !status) return status;
  for (;;) {
    auto entry = reader.next();
    if (!entry) return entry.error();
    if (!*entry) return ok();
    auto const& [at, head, text, data] = **entry;
    // Skips pushes of an older file that the base contains already.
    if (head.position < shard.position()) continue;
    auto push = push_of(text, data);
    if (!push || head.position != shard.position())
      return damaged(reader.path(), at, "the push at position " + std::to_string(shard.position()) + " is not there");
    auto const turn = shard.turn(*push);
    if (push->kind != PushKind::clients && (shard.refuse(*push) || !turn || *turn != Shard::Turn::now))
      return Error(LogErrc::misfit, reader.path() + ": a push does not fit the shard");
    auto change = shard.prepare(std::move(*push));
    if (!change) return change.error();
    if (auto computed = change->compute_all(); !computed) return computed;
    shard.finish(std::move(*change));
  }
}

// The directory of the last epoch with a base, and its files. In an epoch without a base nothing was acknowledged.
struct Found {
  std::string directory;
  std::vector<std::uint64_t> bases, logs;  // ascending
};
Result<Found> find_last(checkpoints::Files& files, std::string const& shard_directory) {
  auto const names = files.list(shard_directory);
  if (!names && checkpoints::is_missing(names.error()))
    return Error(LogErrc::not_found, shard_directory + " is not there");
  if (!names) return names.error();
  std::vector<std::uint32_t> epochs;
  for (auto const& name : *names)
    if (auto const epoch = log_format::parse_epoch_name(name)) epochs.push_back(*epoch);
  std::ranges::sort(epochs, std::greater<>());
  for (auto const epoch : epochs) {
    Found found;
    found.directory = shard_directory + "/" + log_format::epoch_name(epoch);
    auto const content = files.list(found.directory);
    if (!content) return content.error();
    for (auto const& name : *content)
      if (auto const parsed = log_format::parse_file_name(name))
        (parsed->is_base ? found.bases : found.logs).push_back(parsed->generation);
    std::ranges::sort(found.bases);
    std::ranges::sort(found.logs);
    if (!found.bases.empty()) return found;
  }
  return Error(LogErrc::not_found, shard_directory + " has no base");
}

}  // namespace

Result<std::unique_ptr<Shard>> recover(checkpoints::Files& files, std::string const& shard_directory, ShardSpec spec,
                                       ShardMemory memory) {
  auto const found = find_last(files, shard_directory);
  if (!found) return found.error();
  auto const& [directory, bases, logs] = *found;
  auto const generation = bases.back();
  if (!std::ranges::binary_search(logs, generation))
    return damaged(directory + "/" + log_format::file_name(false, generation), 0, "the file is not there");
  auto const base_path = directory + "/" + log_format::file_name(true, generation);
  auto const base = files.open(base_path);
  if (!base) return base.error();
  auto shard = read_base(**base, base_path, std::move(spec), memory);
  if (!shard) return shard.error();
  for (auto const log : logs) {
    if (log < generation) continue;
    auto const path = directory + "/" + log_format::file_name(false, log);
    auto const file = files.open(path);
    if (!file) return file.error();
    Reader reader(**file, path, memory.pool);
    if (auto status = replay(reader, **shard); !status) return status.error();
  }
  return std::move(*shard);
}

}  // namespace chorus::parameters
