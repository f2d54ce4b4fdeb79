// Calls of a member with neither sequence nor key: only their order of arrival identifies them, which works as long as
// every client gets the answer to its call.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "http/message/reception.hpp"

namespace chorus::service {

// Used on the control thread only. Keeps the calls whose answers may not have arrived.
class UnnamedCalls {
 public:
  struct Place {
    std::uint32_t epoch = 0;
    std::uint64_t sequence = 0;
    friend auto operator<=>(Place const&, Place const&) = default;
  };

  // `what`: text such as "all_reduce of x". The reception is not null.
  void begun(Place place, std::string what, std::shared_ptr<http::Reception> reception);
  void succeeded(Place place);
  // The call has changed nothing, so it may be repeated.
  void failed(Place place);

  // Describes a call before `place` whose client has gone without the answer: the next unnamed call may be its
  // The client of this member names its position, so the calls need not be kept.
  [[nodiscard]] std::optional<std::string> lost(Place place);
  // The member's client says where it stands.
  void forget() { calls_.clear(); }

 private:
  struct Call {
    Place place;
    std::string what;
    std::shared_ptr<http::Reception> reception;
    bool has_succeeded = false;
  };
  [[nodiscard]] std::deque<Call>::iterator find(Place place);

  std::deque<Call> calls_;  // in order
};

}  // namespace chorus::service
