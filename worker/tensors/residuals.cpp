#include "worker/tensors/residuals.hpp"

#include "collectives/core/assert.hpp"
#include "worker/tensors/errc.hpp"

namespace chorus::tensors {
namespace {

template <class Float>
std::span<Float> floats_of(Block& block) {
  return {reinterpret_cast<Float*>(block.data()), block.size_bytes() / sizeof(float)};
}

}  // namespace

struct Residuals::Entry {
  std::uint32_t epoch = 0;
  std::shared_ptr<Block> residual;  // null: all 0
  bool is_used = false;
};

Result<std::shared_ptr<Residuals::Use>> Residuals::use(std::string const& tensor, std::string const& group,
                                                       std::uint32_t epoch, std::shared_ptr<Block> lost) {
  std::shared_ptr<Block> dropped;  // freed after the lock is released
  std::scoped_lock const lock(mutex_);
  auto& entry = entries_[{tensor, group}];
  if (entry == nullptr) entry = std::make_shared<Entry>();
  if (entry->is_used)
    return Error(TensorErrc::busy,
                 "the residual of tensor " + tensor + " in group " + group + " is used by another collective");
  bool const fits = entry->residual != nullptr && entry->residual->size_bytes() == lost->size_bytes();
  if (entry->epoch != epoch || !fits) dropped.swap(entry->residual);
  entry->epoch = epoch;
  entry->is_used = true;
  return std::make_shared<Use>(*this, entry, std::move(lost));
}

Residuals::Use::~Use() {
  std::scoped_lock const lock(residuals_.mutex_);
  entry_->is_used = false;
}

std::span<float const> Residuals::Use::residual() const {
  return entry_->residual != nullptr ? floats_of<float const>(*entry_->residual) : std::span<float const>();
}

std::span<float> Residuals::Use::lost() const { return floats_of<float>(*lost_); }

void Residuals::Use::keep() {
  CHORUS_ASSERT(lost_ != nullptr, "kept once");
  std::scoped_lock const lock(residuals_.mutex_);
  entry_->residual.swap(lost_);
}

template <class Fits>
void Residuals::drop(Fits fits) {
  Entries dropped;  // freed after the lock is released
  std::scoped_lock const lock(mutex_);
  for (auto at = entries_.begin(); at != entries_.end();)
    if (auto const here = at++; fits(here->first)) dropped.insert(entries_.extract(here));
}

void Residuals::drop_tensor(std::string_view tensor) {
  drop([=](Key const& key) { return key.first == tensor; });
}

void Residuals::drop_group(std::string_view group) {
  drop([=](Key const& key) { return key.second == group; });
}

std::uint64_t Residuals::bytes() const {
  std::scoped_lock const lock(mutex_);
  std::uint64_t all = 0;
  for (auto const& [key, entry] : entries_)
    if (entry->residual != nullptr) all += entry->residual->size_bytes();
  return all;
}

}  // namespace chorus::tensors
