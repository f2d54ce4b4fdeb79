// Messages between a member and single others.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

#include "worker/api/joined_group.hpp"
#include "worker/api/members/buffers.hpp"
#include "worker/api/members/epoch_end.hpp"
#include "worker/api/members/pending_call.hpp"
#include "worker/engine/groups/group.hpp"

namespace chorus::embedded {

// All functions from any thread: see JoinedGroup.
class MemberMessages {
 public:
  // The references outlive the object.
  MemberMessages(Group& group, Place place, EpochEnd& end) : group_(group), place_(place), end_(end) {}
  MemberMessages(MemberMessages const&) = delete;
  MemberMessages& operator=(MemberMessages const&) = delete;

  [[nodiscard]] Status send(ConstTensorView tensor, std::uint32_t peer, MessageOptions const& options);
  [[nodiscard]] Result<Received> recv(TensorView tensor, std::uint32_t source, MessageOptions const& options);
  [[nodiscard]] Result<Received> sendrecv(ConstTensorView sent, std::uint32_t peer, TensorView received,
                                          std::uint32_t source, MessageOptions const& options);
  [[nodiscard]] std::shared_ptr<PendingCall> begin_send(ConstTensorView tensor, std::uint32_t peer,
                                                        MessageOptions const& options);
  // owner: keeps this object; the receive can be cancelled as long as it exists.
  [[nodiscard]] std::shared_ptr<PendingCall> begin_recv(TensorView tensor, std::uint32_t source,
                                                        MessageOptions const& options, Received* received,
                                                        std::weak_ptr<void const> owner);
  [[nodiscard]] std::shared_ptr<PendingCall> begin_sendrecv(ConstTensorView sent, std::uint32_t peer, TensorView into,
                                                            std::uint32_t source, MessageOptions const& options,
                                                            Received* received);

  // Waits for the ends of messages that were begun. Call after Group::interrupt().
  void wait();

 private:
  struct Begun {
    std::shared_ptr<PendingCall> pending;
    std::uint64_t number = 0;  // of the last request
  };

  // Errors: WorkerErrc::bad_argument; EpochEnd::standing().
  [[nodiscard]] Status check(std::string_view what, std::uint32_t peer, MessageOptions const& options) const;
  [[nodiscard]] Status check_send(std::uint32_t peer, MessageOptions const& options) const;
  [[nodiscard]] Status check_receive(std::uint32_t source, MessageOptions const& options) const;
  [[nodiscard]] Status check_both(std::uint32_t peer, std::uint32_t source, MessageOptions const& options) const;
  [[nodiscard]] Status finish_one(engine::MessageResult const& result);
  // The last result is that of the receive, if there is one.
  [[nodiscard]] Result<Received> finish(std::span<engine::MessageResult const> results);
  [[nodiscard]] Begun begin(Status const& checked, std::vector<engine::MessageRequest> const& requests,
                            std::chrono::milliseconds timeout, Received* received);

  Group& group_;
  Place const place_;
  EpochEnd& end_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t begun_ = 0;  // and not ended
};

}  // namespace chorus::embedded
