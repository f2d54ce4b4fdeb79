#include "worker/devices/cuda/lending.hpp"

#include "worker/devices/cuda/gpus.hpp"

namespace chorus::devices {

Result<LentArena> GpuUnit::lend(std::uint64_t proof) {
  std::scoped_lock lock(lending_);
  if (is_proved_) return lent_;
  if (!proving_) {
    auto const whole = arena();
    if (!whole) return whole.error();
    auto const handle = gpu_->share((*whole)->bytes().data());
    if (!handle) return handle.error();
    auto block = (*whole)->acquire(sizeof proof);
    if (!block) return block.error();
    auto writing = WordCopy::upload(*this, (*block)->bytes().data(), proof);
    if (!writing) return writing.error();
    proof_ = std::move(*block);
    proving_ = std::move(*writing);
    auto const at = static_cast<std::uint64_t>(proof_->bytes().data() - (*whole)->bytes().data());
    lent_ = LentArena{*handle, gpu_->info().uuid, (*whole)->bytes().size(), at};
  }
  auto const written = proving_->is_done();
  if (!written) {
    if (!lost()) proving_.reset();  // the destructor might wait for a lost GPU for ever
    return written.error();
  }
  if (!*written)
    return Error(GpuErrc::failed, device_name(gpu_->info().index) + ": it has not come to writing its proof yet");
  proving_.reset();
  is_proved_ = true;
  return lent_;
}

Borrowing::Borrowing(GpuUnit& reader, std::shared_ptr<BorrowedArena const> arena, std::uint64_t proof,
                     std::unique_ptr<WordCopy> reading)
    : reader_(reader), arena_(std::move(arena)), proof_(proof), reading_(std::move(reading)) {}

Result<std::unique_ptr<Borrowing>> Borrowing::begin(GpuUnit& reader, LentArena const& lent, std::uint64_t proof) {
  auto& gpu = reader.gpu();
  if (auto const why = reader.lost()) return Error(GpuErrc::lost, *why);
  if (auto const reaches = gpu.reach(lent.uuid); !reaches) return reaches.error();
  if (lent.bytes < sizeof proof || lent.proof_at > lent.bytes - sizeof proof)
    return Error(GpuErrc::bad_handle, device_name(gpu.info().index) + ": the arena has " + std::to_string(lent.bytes) +
                                          " bytes, and its proof is said to lie at byte " +
                                          std::to_string(lent.proof_at));
  auto const opened = gpu.open(lent.handle, lent.bytes);
  if (!opened) {
    reader.saw(opened.error());
    return opened.error();
  }
  auto arena = std::make_shared<BorrowedArena const>(gpu, std::span<std::byte>(*opened, lent.bytes));
  auto reading = WordCopy::download(reader, *opened + lent.proof_at);
  if (!reading) return reading.error();
  return std::unique_ptr<Borrowing>(new Borrowing(reader, std::move(arena), proof, std::move(*reading)));
}

Result<std::shared_ptr<BorrowedArena const>> Borrowing::arena() {
  auto const read = reading_->is_done();
  if (!read) return read.error();
  if (!*read) return std::shared_ptr<BorrowedArena const>();
  if (reading_->word() == proof_) return arena_;
  return Error(GpuErrc::bad_handle,
               device_name(reader_.gpu().info().index) + ": the memory of the handle is not the arena that was meant");
}

bool Borrowing::rests() {
  auto const read = reading_->is_done();
  return read.has_value() && *read;
}

}  // namespace chorus::devices
