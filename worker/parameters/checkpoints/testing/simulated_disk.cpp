#include "worker/parameters/checkpoints/testing/simulated_disk.hpp"

#include <algorithm>

#include "collectives/core/assert.hpp"

namespace chorus::checkpoints::testing {
namespace {

std::string parent_of(std::string const& path) { return path.substr(0, path.rfind('/')); }

Error missing(std::string const& path) {
  return {std::make_error_code(std::errc::no_such_file_or_directory), "there is no " + path};
}

class SimulatedInput final : public InputFile {
 public:
  explicit SimulatedInput(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {}
  std::uint64_t size() const override { return bytes_.size(); }
  Status read(std::uint64_t offset, std::span<std::byte> into) const override {
    if (offset > bytes_.size() || into.size() > bytes_.size() - offset)
      return Error(std::make_error_code(std::errc::io_error), "the file ends");
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), into.size(), into.begin());
    return ok();
  }

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace

class SimulatedOutput final : public OutputFile {
 public:
  SimulatedOutput(SimulatedDisk& disk, SimulatedDisk::NodePtr node) : disk_(disk), node_(std::move(node)) {}
  Status write(std::span<std::byte const> bytes) override {
    auto const error = disk_.begin_operation();
    auto const written = error ? bytes.first(bytes.size() / 2) : bytes;
    node_->now.insert(node_->now.end(), written.begin(), written.end());
    return error ? Status(*error) : ok();
  }
  Status sync() override {
    if (auto const error = disk_.begin_operation()) return *error;
    node_->synced = node_->now;
    return ok();
  }

 private:
  SimulatedDisk& disk_;
  SimulatedDisk::NodePtr node_;
};

SimulatedDisk::SimulatedDisk() {
  auto const root = std::make_shared<Node>();
  root->is_directory = true;
  entries_["disk"] = synced_entries_["disk"] = root;
}

void SimulatedDisk::crash_at(std::uint64_t operation) {
  crash_at_ = operations_ + operation;
  happened_ = false;
}

void SimulatedDisk::fail_at(std::uint64_t operation, std::errc code, std::uint64_t times) {
  fail_at_ = operations_ + operation;
  fail_code_ = code;
  fail_times_ = times;
  happened_ = false;
}

std::optional<Error> SimulatedDisk::begin_operation() {
  auto const operation = operations_++;
  if (crash_at_ && operation >= *crash_at_) {
    happened_ = true;
    return Error(std::make_error_code(std::errc::operation_canceled), "the machine has stopped");
  }
  if (fail_at_ && operation >= *fail_at_ && operation - *fail_at_ < fail_times_) {
    happened_ = true;
    return Error(std::make_error_code(fail_code_), "the disk refuses");
  }
  return std::nullopt;
}

void SimulatedDisk::change(Change const& change) {
  if (!change.gone.empty()) entries_.erase(change.gone);
  if (!change.appears.empty()) entries_[change.appears] = change.node;
  pending_.push_back(change);
}

SimulatedDisk::NodePtr SimulatedDisk::find(std::string const& path) const {
  auto const found = entries_.find(path);
  return found == entries_.end() ? nullptr : found->second;
}

SimulatedDisk SimulatedDisk::after_crash(std::uint64_t seed) const {
  std::mt19937_64 random(seed);
  SimulatedDisk found;
  found.entries_ = synced_entries_;
  // Each change of a directory has reached the disk or has not; a rename is one change.
  for (auto const& change : pending_) {
    if (seed == 0 || (seed != 1 && random() % 2 == 0)) continue;
    if (!change.gone.empty()) found.entries_.erase(change.gone);
    if (!change.appears.empty()) found.entries_[change.appears] = change.node;
  }
  // Entries of a directory that does not exist are lost.
  for (auto entry = found.entries_.begin(); entry != found.entries_.end();) {
    bool const orphan = entry->first != "disk" && !found.entries_.contains(parent_of(entry->first));
    entry = orphan ? found.entries_.erase(entry) : std::next(entry);
  }
  for (auto& [path, node] : found.entries_) {
    auto const copy = std::make_shared<Node>(*node);
    // Of unsynced bytes there is nothing, everything, a beginning, or some blocks with zeros in between.
    auto const kind = seed < 2 ? seed : random() % 4;
    if (kind == 0) copy->now = copy->synced;
    if (kind == 2) copy->now.resize(copy->synced.size() + random() % (copy->now.size() - copy->synced.size() + 1));
    if (kind == 3)
      for (auto at = copy->synced.size(); at < copy->now.size(); at += 16)
        if (random() % 2 == 0)
          for (auto i = at; i < std::min(at + 16, copy->now.size()); ++i) copy->now[i] = std::byte{0};
    copy->synced = copy->now;
    node = copy;
  }
  found.synced_entries_ = found.entries_;
  return found;
}

std::vector<std::byte>& SimulatedDisk::bytes(std::string const& path) {
  auto const node = find(path);
  CHORUS_ASSERT(node != nullptr, "the file is there");
  return node->now;
}

std::vector<std::string> SimulatedDisk::paths() const {
  std::vector<std::string> all;
  for (auto const& [path, node] : entries_)
    if (!node->is_directory) all.push_back(path);
  return all;
}

Status SimulatedDisk::make_directory(std::string const& path) {
  if (find(path) != nullptr) return ok();
  if (find(parent_of(path)) == nullptr) return missing(parent_of(path));
  if (auto const error = begin_operation()) return *error;
  auto const node = std::make_shared<Node>();
  node->is_directory = true;
  change({parent_of(path), "", path, node});
  return ok();
}

Result<std::unique_ptr<OutputFile>> SimulatedDisk::create(std::string const& path) {
  if (find(parent_of(path)) == nullptr) return missing(parent_of(path));
  if (auto const error = begin_operation()) return *error;
  auto const node = std::make_shared<Node>();
  change({parent_of(path), "", path, node});
  return std::unique_ptr<OutputFile>(std::make_unique<SimulatedOutput>(*this, node));
}

Result<std::unique_ptr<InputFile>> SimulatedDisk::open(std::string const& path) {
  auto const node = find(path);
  if (node == nullptr) return missing(path);
  return std::unique_ptr<InputFile>(std::make_unique<SimulatedInput>(node->now));
}

Status SimulatedDisk::rename(std::string const& from, std::string const& to) {
  auto const node = find(from);
  if (node == nullptr) return missing(from);
  if (auto const error = begin_operation()) return *error;
  change({parent_of(to), from, to, node});
  return ok();
}

Status SimulatedDisk::remove(std::string const& path) {
  if (find(path) == nullptr) return missing(path);
  if (auto const error = begin_operation()) return *error;
  change({parent_of(path), path, "", nullptr});
  return ok();
}

Result<bool> SimulatedDisk::remove_abandoned(std::string const& path) {
  if (auto const removed = remove(path); removed.has_error()) return removed.error();
  return true;
}

Status SimulatedDisk::remove_directory(std::string const& path) {
  if (find(path) == nullptr) return missing(path);
  auto const inside = list(path);
  CHORUS_ASSERT(inside.has_value() && inside->empty(), "a directory is emptied before it is removed");
  if (auto const error = begin_operation()) return *error;
  change({parent_of(path), path, "", nullptr});
  return ok();
}

Status SimulatedDisk::sync_directory(std::string const& path) {
  if (find(path) == nullptr) return missing(path);
  if (auto const error = begin_operation()) return *error;
  for (auto const& change : pending_) {
    if (change.directory != path) continue;
    if (!change.gone.empty()) synced_entries_.erase(change.gone);
    if (!change.appears.empty()) synced_entries_[change.appears] = change.node;
  }
  std::erase_if(pending_, [&](Change const& change) { return change.directory == path; });
  return ok();
}

Result<std::vector<std::string>> SimulatedDisk::list(std::string const& path) {
  if (find(path) == nullptr) return missing(path);
  std::vector<std::string> names;
  for (auto const& [entry, node] : entries_)
    if (entry.starts_with(path + "/") && parent_of(entry) == path) names.push_back(entry.substr(path.size() + 1));
  return names;
}

}  // namespace chorus::checkpoints::testing
