// Messages received into host memory.
#pragma once

#include <memory>

#include "worker/engine/channels/receive_channel.hpp"
#include "worker/engine/program/workspace.hpp"

namespace chorus::engine {

// Places arriving bytes: those of a recv go straight to their destination, those that are reduced or widened through
// the scratch memory, and eager bytes that come too early into a stage.
class HostReceiveChannel final : public ReceiveChannel {
 public:
  // See ReceiveChannel; the workspace outlives the channel too.
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
  // State of the current frame.
  Way way_ = Way::direct;
  std::byte* scratch_ = nullptr;
  std::size_t in_scratch_ = 0;
};

}  // namespace chorus::engine
