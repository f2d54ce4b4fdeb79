// Passes large values through a worker that does not have them: one piece of one shard at a time, so memory use does
// not depend on the parameter's size.
#pragma once

#include "worker/parameters/serving/access/access.hpp"
#include "worker/service/requests/helper.hpp"
#include "worker/tensors/memory.hpp"

namespace chorus::service {

// Used on the control thread only. The arguments outlive the object and its answers.
class ParameterGateway {
 public:
  static constexpr std::uint64_t buffered_bytes = 16 << 20;  // values up to this size travel as a whole
  static constexpr std::uint64_t piece_bytes = 4 << 20;

  // self: a name that no other process has.
  ParameterGateway(parameters::Access& access, tensors::Pool& pool, Helper& helper, std::string self)
      : access_(access), pool_(pool), helper_(helper), self_(std::move(self)) {}

  // The current values of all owners, held until they have been read or an owner loses them.
  struct Found {
    parameters::Access::Outcome outcome;
    http::Stream stream;  // empty: nothing has changed
  };
  boost::asio::awaitable<http::Checked<Found>> pull(parameters::PlacementPtr placement,
                                                    parameters::Access::ReadConstraints constraints,
                                                    http::ByteRange range, http::TimePoint deadline);

  // True if the owners can judge their parts without the whole push.
  [[nodiscard]] static bool can_pass_on(parameters::Placement const& placement, parameters::Push const& push);
  // `push` lacks its data, which is in the body. Problem unavailable if an owner is lost meanwhile: the client repeats
  // the push.
  boost::asio::awaitable<http::Checked<parameters::Access::Outcome>> push(parameters::PlacementPtr placement,
                                                                          parameters::Push push, http::Body& body,
                                                                          http::TimePoint deadline);

 private:
  parameters::Access& access_;
  tensors::Pool& pool_;
  Helper& helper_;
  std::string const self_;
  std::uint64_t readers_ = 0;
};

}  // namespace chorus::service
