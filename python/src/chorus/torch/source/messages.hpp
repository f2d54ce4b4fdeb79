// Point to point: messages of the library as c10d has them.
#pragma once

#include <algorithm>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <utility>
#include <vector>

#include "failure.hpp"
#include "interpreter.hpp"
#include "membership.hpp"
#include "memory.hpp"

namespace chorus::process_group {

// A message under way, and the tensor that it uses until it has ended. All functions from any thread.
class Transfer {
 public:
  explicit Transfer(Read read) : read_(std::move(read)) {}
  explicit Transfer(at::Tensor const& received)
      : written_(std::in_place, received, false), queued_(Queued::before({}, {received})) {}
  // The message has ended.
  ~Transfer() { chorus_request_free(request_); }
  Transfer(Transfer const&) = delete;
  Transfer& operator=(Transfer const&) = delete;

  chorus_status_t send(chorus_group_t* group, std::uint32_t to, chorus_message_options_t const& how,
                       chorus_error_t* error) {
    return chorus_send_async(group, read_->view(), to, &how, &request_, error);
  }
  chorus_status_t receive(chorus_group_t* group, std::int64_t from, chorus_message_options_t const& how,
                          chorus_error_t* error) {
    return chorus_recv_async(group, written_->view(), from, &how, &received_, &request_, error);
  }

  // Returns whether it has ended; false as well while another thread waits for it.
  bool test() {
    std::unique_lock const alone(looking_, std::try_to_lock);
    return alone.owns_lock() && ended_with([&](auto* error) { return chorus_request_test(request_, error); });
  }
  // Waits at most so long, and returns whether it has ended.
  bool wait(std::chrono::milliseconds timeout) {
    std::lock_guard const alone(looking_);
    return ended_with([&](auto* error) {
      return timeout == kNoTimeout ? chorus_request_wait(request_, error)
                                   : chorus_request_wait_for(request_, timeout.count(), error);
    });
  }

  // After the end. Throws unless it was a good one; `what` says which message this is.
  void check(std::string const& what) const {
    failure_.check(status_, what);
    TORCH_CHECK_VALUE(!expected_bytes_ || received_.bytes == *expected_bytes_, what, ": a message of ", received_.bytes,
                      " bytes, expected ", *expected_bytes_);
    if (unwritten_) std::rethrow_exception(unwritten_);
  }
  [[nodiscard]] int source() const { return static_cast<int>(received_.source); }

 private:
  template <class Look>
  bool ended_with(Look look) {
    if (has_ended_) return true;
    status_ = look(failure_.get());
    if (status_ == CHORUS_PENDING) return false;
    has_ended_ = true;
    try {
      if (written_) finish();
    } catch (...) { unwritten_ = std::current_exception(); }
    read_.reset();
    written_.reset();
    return true;
  }

  void finish() {
    expected_bytes_ = written_->memory().nbytes();
    if (status_ != CHORUS_OK) return;
    at::AutoDispatchBelowADInplaceOrView const values_alone;
    if (queued_) queued_->wait();
    written_->finish();
  }

  std::mutex looking_;  // the library takes one thread at a time
  std::optional<Read> read_;
  std::optional<Written> written_;
  std::shared_ptr<Queued const> queued_;  // before the receive
  chorus_request_t* request_ = nullptr;
  chorus_received_t received_{};
  Failure failure_;
  chorus_status_t status_ = CHORUS_PENDING;
  bool has_ended_ = false;
  std::exception_ptr unwritten_;  // why what was received could not be copied into the tensor
  std::optional<std::uint64_t> expected_bytes_;
};

// What isend() and irecv() return. A message that nobody waits for goes on.
class MessageWork final : public c10d::Work {
 public:
  MessageWork(Kind kind, int rank, at::Tensor const& tensor, std::string what, std::shared_ptr<Transfer> transfer)
      : Work(rank, kind.type, kind.title, std::vector<at::Tensor>{tensor}),
        tensor_(tensor),
        what_(std::move(what)),
        transfer_(std::move(transfer)) {}

  bool isCompleted() override { return transfer_->test() && conclude(); }
  bool isSuccess() const override { return const_cast<MessageWork*>(this)->isCompleted() && Work::isSuccess(); }
  bool wait(std::chrono::milliseconds timeout = kNoTimeout) override {
    InterpreterEnd const end;
    if (!transfer_->wait(timeout))
      throw std::runtime_error(what_ + ": not within " + std::to_string(timeout.count()) + " ms");
    conclude();
    if (auto const failure = exception()) std::rethrow_exception(failure);
    return true;
  }
  int sourceRank() const override { return transfer_->source(); }
  std::vector<at::Tensor> result() override { return {tensor_}; }

 private:
  bool conclude() {
    std::lock_guard const lock(concluding_);
    if (is_concluded_) return true;
    std::exception_ptr failure;
    try {
      transfer_->check(what_);
    } catch (...) { failure = std::current_exception(); }
    is_concluded_ = true;
    finish(failure);
    return true;
  }

  at::Tensor const tensor_;
  std::string const what_;
  std::shared_ptr<Transfer> const transfer_;
  std::mutex concluding_;
  bool is_concluded_ = false;
};

// Messages of one membership, in no order with its collectives. All functions from any thread.
class Messages {
 public:
  explicit Messages(Membership& membership) : membership_(membership) {}
  // A message that has not ended cannot be cancelled, and goes on: what it uses is left to it.
  ~Messages() {
    for (auto& transfer : under_way_)
      if (membership_.is_foreign() || !transfer->test()) new std::shared_ptr<Transfer>(std::move(transfer));
  }
  Messages(Messages const&) = delete;
  Messages& operator=(Messages const&) = delete;

  c10::intrusive_ptr<c10d::Work> send(Kind kind, int rank, at::Tensor const& tensor, int to, int tag) {
    auto const what = describe(kind, ", to rank " + std::to_string(to));
    TORCH_CHECK_VALUE(to >= 0, what, ": there is no such rank");
    return begin(kind, rank, tensor, what, std::make_shared<Transfer>(Read(tensor)), tag,
                 [to](Transfer& transfer, auto* group, auto const& how, auto* error) {
                   return transfer.send(group, static_cast<std::uint32_t>(to), how, error);
                 });
  }

  // From rank `from`, or CHORUS_ANY_SOURCE.
  c10::intrusive_ptr<c10d::Work> receive(Kind kind, int rank, at::Tensor const& tensor, std::int64_t from, int tag) {
    auto const what = describe(kind, from < 0 ? ", from any rank" : ", from rank " + std::to_string(from));
    return begin(kind, rank, tensor, what, std::make_shared<Transfer>(tensor), tag,
                 [from](Transfer& transfer, auto* group, auto const& how, auto* error) {
                   return transfer.receive(group, from, how, error);
                 });
  }

 private:
  [[nodiscard]] std::string describe(Kind kind, std::string const& with) const {
    return std::string("chorus: ") + kind.name + " of " + membership_.place() + with;
  }

  template <class Begin>
  c10::intrusive_ptr<c10d::Work> begin(Kind kind, int rank, at::Tensor const& tensor, std::string const& what,
                                       std::shared_ptr<Transfer> transfer, int tag, Begin begin_transfer) {
    membership_.check_process(kind);
    TORCH_CHECK_VALUE(tag >= 0, what, ": a tag of ", tag, ", expected 0 to ", std::numeric_limits<int>::max());
    chorus_message_options_t how{};
    how.size = sizeof how;
    how.tag = static_cast<std::uint32_t>(tag);
    how.timeout_ms = membership_.timeout().count();
    Failure const failure;
    failure.check(begin_transfer(*transfer, membership_.group(), how, failure.get()), what);
    {
      std::lock_guard const lock(keeping_);
      auto const has_ended = [](std::shared_ptr<Transfer> const& one) { return one->test(); };
      under_way_.erase(std::remove_if(under_way_.begin(), under_way_.end(), has_ended), under_way_.end());
      under_way_.push_back(transfer);
    }
    return c10::make_intrusive<MessageWork>(kind, rank, tensor, what, std::move(transfer));
  }

  Membership& membership_;
  std::mutex keeping_;
  std::vector<std::shared_ptr<Transfer>> under_way_;
};

}  // namespace chorus::process_group
