// Large values on their way through a worker that does not have them: a piece of one shard at a time, so that it needs
// memory for a piece, whatever the parameter's size.
#pragma once

#include "worker/parameters/serving/access.hpp"
#include "worker/tensors/memory.hpp"

namespace chorus::service {

// On the control thread. What it is given outlives it, and what it answers.
class ParameterGateway {
 public:
  static constexpr std::uint64_t buffered_bytes = 16 << 20;  // up to this they travel as a whole
  static constexpr std::uint64_t piece_bytes = 4 << 20;

  ParameterGateway(parameters::Access& access, tensors::Pool& pool) : access_(access), pool_(pool) {}

  // What every owner has now, held until it has been read, or one of them lost it.
  struct Found {
    parameters::Access::Outcome outcome;
    http::Stream stream;  // without one nothing has changed
  };
  boost::asio::awaitable<http::Checked<Found>> pull(parameters::PlacementPtr placement, parameters::Access::Wish wish,
                                                    http::ByteRange range, http::TimePoint deadline);

  // Whether the owners can judge their parts without the whole.
  [[nodiscard]] static bool can_pass_on(parameters::Placement const& placement, parameters::Push const& push);
  // `push` without its data, which is the body. An owner that is lost meanwhile is a problem, unavailable: the client
  // repeats the push.
  boost::asio::awaitable<http::Checked<parameters::Access::Outcome>> push(parameters::PlacementPtr placement,
                                                                          parameters::Push push, http::Body& body,
                                                                          http::TimePoint deadline);

 private:
  parameters::Access& access_;
  tensors::Pool& pool_;
};

}  // namespace chorus::service
