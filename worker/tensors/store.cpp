#include "worker/tensors/store.hpp"

#include <algorithm>

#include "collectives/core/assert.hpp"
#include "worker/tensors/errc.hpp"

namespace chorus::tensors {
namespace {

// Number of erased names whose versions are kept. When it is reached, version_floor_ replaces them all.
constexpr std::size_t max_erased_names = 16384;

Error unknown(std::string_view name) { return {TensorErrc::unknown, "there is no tensor " + std::string(name)}; }

Error busy(std::string_view name, std::string_view why) {
  return {TensorErrc::busy, "tensor " + std::string(name) + " " + std::string(why)};
}

constexpr std::string_view being_written = "is being written by a collective";

Status check_version(std::string_view name, std::uint64_t expected, std::uint64_t actual) {
  if (expected == actual) return ok();
  auto const is = actual == 0 ? " does not exist" : " is at version " + std::to_string(actual);
  auto const wanted =
      expected == 0 ? "it was expected not to exist" : "version " + std::to_string(expected) + " was expected";
  return Error(TensorErrc::version_changed, "tensor " + std::string(name) + is + ", " + wanted);
}

}  // namespace

Result<Tensor> Store::get(std::string_view name) const {
  std::scoped_lock lock(mutex_);
  auto const found = slots_.find(name);
  if (found == slots_.end()) return unknown(name);
  if (found->second.exclusive) return busy(name, being_written);
  return found->second.tensor;
}

std::vector<Tensor> Store::list(std::string_view after, std::size_t limit) const {
  std::vector<Tensor> tensors;
  std::scoped_lock lock(mutex_);
  for (auto slot = slots_.upper_bound(after); slot != slots_.end() && tensors.size() < limit; ++slot)
    tensors.push_back(slot->second.tensor);
  return tensors;
}

Result<std::uint64_t> Store::put(std::string name, Dtype dtype, Shape shape, std::shared_ptr<Block const> data,
                                 std::optional<std::uint64_t> expected) {
  std::vector<NewVersion> one;
  one.push_back({std::move(name), dtype, std::move(shape), std::move(data), expected});
  return put_all(std::move(one));
}

// Old data is freed together with `versions`, after the lock is released.
Result<std::uint64_t> Store::put_all(std::vector<NewVersion> versions) {
  for (auto const& version : versions) {
    if (!is_valid_name(version.name))
      return Error(TensorErrc::bad_name, "tensor names are made of letters, digits and ._~/-");
    auto const elements = element_count(version.shape, version.dtype);
    if (!elements) return elements.error();
    CHORUS_ASSERT(version.data->size_bytes() == *elements * element_bytes(version.dtype), "the data fits the shape");
  }
  std::scoped_lock lock(mutex_);
  for (auto const& version : versions)
    if (auto const status = check_put(version); !status) return status.error();
  auto sum = std::uint64_t{0};
  for (auto& version : versions) sum += replace(version);
  return sum;
}

Status Store::check_put(NewVersion const& version) const {
  auto const found = slots_.find(version.name);
  if (found != slots_.end() && found->second.exclusive) return busy(version.name, being_written);
  if (!version.expected) return ok();
  return check_version(version.name, *version.expected, found == slots_.end() ? 0 : found->second.tensor.version);
}

std::uint64_t Store::replace(NewVersion& version) {
  auto const found = slots_.find(version.name);
  if (found == slots_.end()) {
    auto const number = version_before(version.name) + 1;
    slots_.emplace(
        version.name,
        Slot{Tensor{version.name, version.dtype, std::move(version.shape), number, std::move(version.data)}, false});
    return number;
  }
  auto& tensor = found->second.tensor;
  tensor.dtype = version.dtype;
  tensor.shape = std::move(version.shape);
  tensor.data.swap(version.data);
  return ++tensor.version;
}

Status Store::erase(std::string_view name, std::optional<std::uint64_t> expected) {
  Slot erased;  // freed after the lock is released
  {
    std::scoped_lock lock(mutex_);
    auto const found = slots_.find(name);
    if (found == slots_.end()) return unknown(name);
    if (found->second.exclusive) return busy(name, being_written);
    if (expected)
      if (auto const fits = check_version(name, *expected, found->second.tensor.version); !fits) return fits.error();
    remember_version(found->first, found->second.tensor.version);
    erased = std::move(found->second);
    slots_.erase(found);
  }
  residuals_.drop_tensor(name);
  return ok();
}

std::uint64_t Store::version_before(std::string const& name) {
  auto const erased = last_version_.find(name);
  if (erased == last_version_.end()) return version_floor_;
  auto const version = std::max(erased->second, version_floor_);
  last_version_.erase(erased);
  return version;
}

void Store::remember_version(std::string const& name, std::uint64_t version) {
  if (last_version_.size() == max_erased_names) {
    for (auto const& [erased, last] : last_version_) version_floor_ = std::max(version_floor_, last);
    last_version_.clear();
  }
  last_version_[name] = version;
}

Result<Store::Exclusive> Store::lock(std::string_view name, std::uint64_t expected) {
  std::scoped_lock lock(mutex_);
  auto const found = slots_.find(name);
  if (found == slots_.end()) return unknown(name);
  auto& slot = found->second;
  if (slot.exclusive) return busy(name, being_written);
  if (auto const fits = check_version(name, expected, slot.tensor.version); !fits) return fits.error();
  bool const is_clients = slot.tensor.data->region() != nullptr;
  if (!is_clients && slot.tensor.data.use_count() != 1) return busy(name, "is being read");
  // Snapshots are only taken under this lock, so there is no reader and will be none. Copying the pointer is a
  // read-modify-write of its count, so reads of the last reader happen before the caller's writes.
  auto block = std::const_pointer_cast<Block>(slot.tensor.data);
  slot.exclusive = true;
  return Exclusive(*this, slot.tensor, std::move(block));
}

void Store::release(std::string const& name, std::uint64_t version) {
  std::scoped_lock lock(mutex_);
  auto const found = slots_.find(name);
  CHORUS_ASSERT(found != slots_.end() && found->second.exclusive, "a locked tensor stays in the store");
  found->second.exclusive = false;
  found->second.tensor.version = version;
}

std::size_t Store::count() const {
  std::scoped_lock lock(mutex_);
  return slots_.size();
}

std::uint64_t Store::host_bytes() const {
  std::scoped_lock lock(mutex_);
  std::uint64_t total = 0;
  for (auto const& [name, slot] : slots_)
    if (slot.tensor.data->gpu() == nullptr) total += slot.tensor.data->size_bytes();
  return total;
}

Store::Exclusive::Exclusive(Store& store, Tensor tensor, std::shared_ptr<Block> block)
    : store_(&store), tensor_(std::move(tensor)), block_(std::move(block)) {}

Store::Exclusive::Exclusive(Exclusive&& other) noexcept
    : store_(std::exchange(other.store_, nullptr)),
      tensor_(std::move(other.tensor_)),
      block_(std::move(other.block_)) {}

Store::Exclusive::~Exclusive() {
  if (store_ != nullptr) release(tensor_.version);
}

std::span<std::byte> Store::Exclusive::bytes() const { return block_->bytes(); }

std::uint64_t Store::Exclusive::release_changed() {
  CHORUS_ASSERT(store_ != nullptr, "released once");
  release(tensor_.version + 1);
  return tensor_.version;
}

void Store::Exclusive::release(std::uint64_t version) {
  tensor_.version = version;
  // lock() requires that the store holds the only reference: these must be dropped before release().
  tensor_.data.reset();
  block_.reset();
  std::exchange(store_, nullptr)->release(tensor_.name, version);
}

}  // namespace chorus::tensors
