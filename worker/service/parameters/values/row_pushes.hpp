// Passes a push of rows on to the owners of its rows while it arrives.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "base/runtime/task_group.hpp"
#include "worker/service/parameters/requests/parameter_tools.hpp"
#include "worker/service/requests/pending.hpp"

namespace chorus::service {

// Used on the control thread only. The arguments outlive the object, which outlives the server's stop().
class RowPushes {
 public:
  explicit RowPushes(ParameterTools tools) : tools_(tools), parts_(tools.executor) {}
  boost::asio::awaitable<void> stop();

  // `push` lacks its data, which is in the body, of the right length. No owner gets a part of a push whose row numbers
  // are wrong. An owner applies its part when it has the whole part, even if the body ends early after that: the client
  // repeats the push. Problems: invalid_field, unavailable for lack of memory, and those of the body and of the owners.
  boost::asio::awaitable<http::Checked<parameters::Access::Outcome>> push(parameters::PlacementPtr placement,
                                                                          parameters::Push push, http::Body& body,
                                                                          http::TimePoint deadline);

 private:
  using Answer = http::Checked<parameters::Access::Outcome>;
  using AnswerPtr = std::shared_ptr<Pending<Answer>>;
  struct Part;
  class Receiving;
  using PartPtr = std::shared_ptr<Part>;

  boost::asio::awaitable<std::optional<http::Problem>> receive(PartPtr part, std::span<std::byte const> row_numbers,
                                                               http::Body& body);
  boost::asio::awaitable<void> push_part(PartPtr part, AnswerPtr pending);
  boost::asio::awaitable<Answer> answer_of(PartPtr part);
  boost::asio::awaitable<std::optional<Answer>> push_in_pieces(PartPtr part);

  ParameterTools const tools_;
  http::TaskGroup parts_;
};

}  // namespace chorus::service
