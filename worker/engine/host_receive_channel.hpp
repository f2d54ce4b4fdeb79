// Messages that are received into memory of the host.
#pragma once

#include <memory>

#include "worker/engine/receive_channel.hpp"
#include "worker/engine/workspace.hpp"

namespace chorus::engine {

// Puts what arrives where it belongs: a recv straight into its destination, what is reduced or widened through the
// scratch memory, and eager bytes that came too early into a stage.
class HostReceiveChannel final : public ReceiveChannel {
 public:
  // As of ReceiveChannel; the workspace outlives the channel, too.
  HostReceiveChannel(RunState& state, Workspace& workspace, plan::Rank peer, std::vector<std::uint32_t> instructions,
                     std::uint64_t digest);

  void wake(std::uint32_t message) override;
  [[nodiscard]] std::span<std::byte> space() override;
  void filled(std::size_t bytes) override;
  void take(std::span<std::byte const> payload) override;
  void took() override;

 private:
  enum class Way : std::uint8_t { direct, reduce, stage };
  void begun(Scratch scratch) override;
  void end_frame();
  void take_from_stage(Message& message);

  Workspace& workspace_;
  std::unique_ptr<std::byte[]> stage_;
  // The frame at hand.
  Way way_ = Way::direct;
  std::byte* scratch_ = nullptr;
  std::size_t in_scratch_ = 0;
};

}  // namespace chorus::engine
