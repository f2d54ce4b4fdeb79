#include "worker/service/operands/held_result.hpp"

#include <algorithm>
#include <iterator>

#include "collectives/core/assert.hpp"
#include "worker/memory/pages/errc.hpp"
#include "worker/tensors/errc.hpp"

namespace chorus::service {
namespace {

using boost::asio::awaitable;
using tensors::Store;

// Results to be copied to clients' regions. The copying thread holds them, even if no coroutine waits any more.
struct RegionWriteback {
  struct One {
    Store::Exclusive home;
    std::shared_ptr<tensors::Block const> result;
  };
  std::vector<One> all;

  // Errors: GpuErrc of the last copy that failed.
  Status copy() {
    auto status = ok();
    for (auto& [home, result] : all)
      if (auto copied = tensors::copy(*result, home.block()); !copied) status = std::move(copied);
    return status;
  }
};

// Empty for a tensor outside clients' regions.
Result<std::optional<Store::Exclusive>> lock_home(Store& store, Store::NewVersion const& version) {
  auto const now = store.get(version.name);
  if (!now || now->data->region() == nullptr) return std::optional<Store::Exclusive>();
  if (now->dtype != version.dtype || now->shape != version.shape)
    return Error(tensors::TensorErrc::version_changed,
                 "tensor " + version.name + " has come to lie in region " + now->data->region()->name());
  auto home = store.lock(version.name, version.expected.value_or(now->version));
  if (!home) return home.error();
  return std::optional(std::move(*home));
}

awaitable<Result<std::uint64_t>> commit_all(Store& store, Helper& helper, std::vector<Store::NewVersion> versions) {
  auto const coming = std::make_shared<RegionWriteback>();
  std::vector<Store::NewVersion> others;
  for (auto& version : versions) {
    auto home = lock_home(store, version);
    if (!home) co_return home.error();
    if (*home)
      coming->all.push_back({std::move(**home), std::move(version.data)});
    else
      others.push_back(std::move(version));
  }
  if (coming->all.empty()) co_return store.put_all(std::move(others));
  auto const copy = [coming] { return coming->copy(); };
  auto const copied = co_await helper.compute(copy);
  // Copied results are committed whatever becomes of the rest: a new version is better than other bytes in an old one.
  auto sum_of_homes = std::uint64_t{0};
  std::optional<Error> damage;
  for (auto& [home, result] : coming->all) {
    auto const& region = *home.tensor().data->region();
    if (auto const why = region.damage())
      damage = Error(memory::MemoryErrc::damaged, "region " + region.name() + ": " + *why);
    sum_of_homes += home.release_changed();
  }
  if (!copied) co_return copied.error();
  if (damage) co_return *damage;
  auto sum = store.put_all(std::move(others));
  if (!sum) co_return sum;
  co_return *sum + sum_of_homes;
}

}  // namespace

HeldResult HeldResult::unchanged(std::uint64_t version) {
  HeldResult held;
  held.held_ = Unchanged{version};
  return held;
}

void HeldResult::add(HeldResult other) {
  if (empty()) {
    held_ = std::move(other.held_);
  } else if (auto* const unchanged = std::get_if<Unchanged>(&held_)) {
    unchanged->version += std::get<Unchanged>(other.held_).version;
  } else {
    auto& versions = std::get<Beside>(held_).versions;
    std::ranges::move(std::get<Beside>(other.held_).versions, std::back_inserter(versions));
  }
}

awaitable<Result<std::uint64_t>> HeldResult::commit(Store& store, Helper& helper) && {
  CHORUS_ASSERT(!empty(), "a result is committed once");
  auto const residual = std::exchange(residual_, nullptr);
  auto version = co_await commit_held(std::exchange(held_, std::monostate()), store, helper);
  if (version && residual) residual->keep();
  co_return version;
}

awaitable<Result<std::uint64_t>> HeldResult::commit_held(Held held, Store& store, Helper& helper) {
  if (auto const* overwritten = std::get_if<std::shared_ptr<Store::Exclusive>>(&held))
    co_return (*overwritten)->release_changed();
  if (auto const* unchanged = std::get_if<Unchanged>(&held)) co_return unchanged->version;
  co_return co_await commit_all(store, helper, std::move(std::get<Beside>(held).versions));
}

void HeldResult::drop() {
  if (auto const* overwritten = std::get_if<std::shared_ptr<Store::Exclusive>>(&held_))
    (*overwritten)->release_changed();
  held_ = std::monostate();
  residual_ = nullptr;
}

}  // namespace chorus::service
