#include "worker/parameters/log/push_log.hpp"

#include <algorithm>
#include <bit>

#include "http/api/cluster/membership.hpp"
#include "http/api/parameters/push_log.hpp"
#include "http/json/json.hpp"
#include "worker/parameters/checkpoints/layout.hpp"
#include "worker/parameters/log/format.hpp"

namespace chorus::parameters {
namespace {

using checkpoints::temporary_suffix;
using log_format::EntryHead;

std::span<std::byte const> bytes_of(std::string const& text) { return std::as_bytes(std::span(text)); }

template <class Head>
std::span<std::byte const> bytes_of_head(Head const& head) {
  return std::as_bytes(std::span(&head, 1));
}

std::string text_of(Push const& push) {
  api::LoggedPush logged;
  logged.kind = std::string(push_kind_names[static_cast<std::size_t>(push.kind)]);
  logged.client = push.client.name;
  logged.incarnation = api::to_hex(push.client.incarnation);
  logged.sequence = push.sequence;
  logged.clock = push.clock;
  logged.dtype = std::string(name(push.dtype));
  logged.rows = push.rows;
  if (push.norm) logged.norm_bits = std::bit_cast<std::uint64_t>(*push.norm);
  logged.clients = push.clients;
  return http::encode(logged);
}

}  // namespace

std::string log_directory(std::string const& root, std::string const& parameter, std::uint32_t shard) {
  // Names never contain %.
  auto directory = root + "/";
  for (char const c : parameter) c == '/' ? directory += "%2F" : directory += c;
  return directory + "@" + std::to_string(shard);
}

PushLog::PushLog(checkpoints::Files& files, std::string shard_directory, std::uint32_t epoch)
    : files_(files),
      shard_directory_(std::move(shard_directory)),
      epoch_(epoch),
      directory_(shard_directory_ + "/" + log_format::epoch_name(epoch)) {}

Status PushLog::open() {
  for (auto const* const directory : {&shard_directory_, &directory_})
    if (auto status = files_.make_directory(*directory); !status) return status;
  remove_temporary_bases();
  if (auto status = checkpoints::sync_entry_of(files_, shard_directory_); !status) return status;
  return files_.sync_directory(shard_directory_);
}

// Safe, because only this worker writes here. The space of incomplete bases may be what a full disk lacks.
void PushLog::remove_temporary_bases() const {
  auto const names = files_.list(shard_directory_);
  if (!names) return;
  for (auto const& name : *names) {
    if (!log_format::parse_epoch_name(name)) continue;
    auto const directory = shard_directory_ + "/" + name;
    auto const content = files_.list(directory);
    if (!content) continue;
    for (auto const& file : *content)
      if (file.ends_with(temporary_suffix)) static_cast<void>(files_.remove(directory + "/" + file));
  }
}

void PushLog::withdraw() {
  file_ = nullptr;
  static_cast<void>(files_.remove(path(log_format::file_name(false, generation_))));
}

Result<std::uint64_t> PushLog::begin() {
  ++generation_;
  bytes_ = 0;
  auto file = files_.create(path(log_format::file_name(false, generation_)));
  if (!file) return file.error();
  file_ = std::move(*file);
  if (auto status = files_.sync_directory(directory_); !status) return status.error();
  return generation_;
}

Status PushLog::append(std::span<LogEntry const> entries) {
  if (entries.empty()) return ok();
  // Small pushes are written with one system call.
  constexpr std::size_t gathered_bytes = 256 << 10;
  std::vector<std::byte> gathered;
  auto const write = [&](std::span<std::byte const> bytes, bool is_last) -> Status {
    bytes_ += bytes.size();
    if (gathered.size() + bytes.size() <= gathered_bytes) {
      gathered.insert(gathered.end(), bytes.begin(), bytes.end());
      bytes = {};
    }
    if (bytes.empty() && !is_last) return ok();
    auto status = file_->write(gathered);
    gathered.clear();
    if (status && !bytes.empty()) status = file_->write(bytes);
    return status;
  };
  for (auto const& entry : entries) {
    auto const& push = entry.push;
    auto const text = text_of(push);
    auto const data = push.data ? push.data->bytes() : std::span<std::byte const>();
    EntryHead head{log_format::push_magic, static_cast<std::uint32_t>(text.size()), data.size(), entry.position, 0, 0};
    log_format::Digest digest;
    digest.add(bytes_of(text));
    digest.add(data);
    head.content = digest.value();
    head.head = log_format::digest_of_head(head);
    for (auto const part : {bytes_of_head(head), bytes_of(text), data})
      if (auto status = write(part, false); !status) return status;
  }
  if (auto status = write({}, true); !status) return status;
  if (auto status = file_->sync(); !status) return status;
  // The commit is not synced. It is present unless the machine has crashed, and distinguishes changed bytes from bytes
  // that never reached the disk.
  EntryHead commit{log_format::commit_magic, 0, 0, entries.back().position + 1, 0, 0};
  commit.head = log_format::digest_of_head(commit);
  bytes_ += sizeof commit;
  return file_->write(bytes_of_head(commit));
}

Status PushLog::write_base(std::uint64_t generation, ShardSpec const& spec, ShardImage const& image) {
  api::LogBase base;
  base.parameter = spec.parameter;
  base.begin = spec.begin;
  base.end = spec.end;
  base.dtype = std::string(name(spec.dtype));
  base.state = image.state;
  log_format::BaseHead head{log_format::base_magic, 0, 0, 0, 0};
  for (auto const& array : image.arrays) {
    base.arrays.push_back({array.name, array.content.bytes.size()});
    head.data_bytes += array.content.bytes.size();
  }
  auto text = http::encode(base);
  head.text_bytes = static_cast<std::uint32_t>(text.size());
  log_format::Digest digest;
  digest.add(bytes_of(text));
  for (auto const& array : image.arrays) digest.add(array.content.bytes);
  head.content = digest.value();
  head.head = log_format::digest_of_head(head);
  auto const head_bytes = bytes_of_head(head);
  text.insert(0, reinterpret_cast<char const*>(head_bytes.data()), head_bytes.size());

  auto const final_path = path(log_format::file_name(true, generation));
  auto const temporary = final_path + std::string(temporary_suffix);
  auto status = write_whole(temporary, text, image);
  if (status) status = files_.rename(temporary, final_path);
  if (!status) {
    static_cast<void>(files_.remove(temporary));
    return status;
  }
  if (status = files_.sync_directory(directory_); !status) return status;
  if (status = remove_before(generation); !status) return status;
  return remove_logs(files_, shard_directory_, epoch_);
}

Status PushLog::write_whole(std::string const& path, std::string const& text, ShardImage const& image) {
  auto file = files_.create(path);
  if (!file) return file.error();
  if (auto status = (*file)->write(bytes_of(text)); !status) return status;
  for (auto const& array : image.arrays)
    if (auto status = (*file)->write(array.content.bytes); !status) return status;
  return (*file)->sync();
}

// Bases first: a log without its base is ignored, but a base without its log would lack acknowledged pushes.
Status PushLog::remove_before(std::uint64_t generation) {
  auto const names = files_.list(directory_);
  if (!names) return names.error();
  for (auto const bases : {true, false})
    for (auto const& name : *names) {
      auto const parsed = log_format::parse_file_name(name);
      if (!parsed || parsed->is_base != bases || parsed->generation >= generation) continue;
      if (auto status = files_.remove(path(name)); !status) return status;
    }
  return ok();
}

Status remove_logs(checkpoints::Files& files, std::string const& shard_directory, std::uint64_t epoch) {
  auto const names = files.list(shard_directory);
  if (!names) return checkpoints::is_missing(names.error()) ? ok() : Status(names.error());
  for (auto const& name : *names) {
    auto const began = log_format::parse_epoch_name(name);
    if (!began || *began >= epoch) continue;
    auto const directory = shard_directory + "/" + name;
    auto const content = files.list(directory);
    if (!content) return content.error();
    for (auto const& file : *content)
      if (auto status = files.remove(directory + "/" + file); !status) return status;
    if (auto status = files.remove_directory(directory); !status) return status;
  }
  return ok();
}

}  // namespace chorus::parameters
