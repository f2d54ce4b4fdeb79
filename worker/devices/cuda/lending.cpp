#include "worker/devices/cuda/lending.hpp"

#include "worker/devices/cuda/gpus.hpp"

namespace chorus::devices {

Result<LentArena> GpuUnit::lend(std::uint64_t proof) {
  std::scoped_lock lock(lending_);
  if (lent_) return *lent_;
  auto const whole = arena();
  if (!whole) return whole.error();
  auto const handle = gpu_->share((*whole)->bytes().data());
  if (!handle) return handle.error();
  auto block = (*whole)->acquire(sizeof proof);
  if (!block) return block.error();
  if (auto const written = upload((*block)->bytes().data(), std::as_bytes(std::span(&proof, 1))); !written)
    return written.error();
  proof_ = std::move(*block);
  auto const at = static_cast<std::uint64_t>(proof_->bytes().data() - (*whole)->bytes().data());
  lent_ = LentArena{*handle, gpu_->info().uuid, (*whole)->bytes().size(), at};
  return *lent_;
}

Result<std::shared_ptr<BorrowedArena const>> borrow(GpuUnit& reader, LentArena const& lent, std::uint64_t proof) {
  auto& gpu = reader.gpu();
  auto const refuse = [&gpu](std::string const& why) {
    return Error(GpuErrc::bad_handle, device_name(gpu.info().index) + ": " + why);
  };
  if (auto const why = reader.lost()) return Error(GpuErrc::lost, *why);
  if (auto const reaches = gpu.reach(lent.uuid); !reaches) return reaches.error();
  if (lent.bytes < sizeof proof || lent.proof_at > lent.bytes - sizeof proof)
    return refuse("the arena has " + std::to_string(lent.bytes) + " bytes, and its proof is said to lie at byte " +
                  std::to_string(lent.proof_at));
  auto const opened = gpu.open(lent.handle, lent.bytes);
  if (!opened) {
    reader.saw(opened.error());
    return opened.error();
  }
  auto arena = std::make_shared<BorrowedArena const>(gpu, std::span<std::byte const>(*opened, lent.bytes));
  std::uint64_t found = 0;
  auto const read = reader.download(std::as_writable_bytes(std::span(&found, 1)), *opened + lent.proof_at);
  if (!read) return read.error();
  if (found != proof) return refuse("the memory of the handle is not the arena that was meant");
  return arena;
}

}  // namespace chorus::devices
