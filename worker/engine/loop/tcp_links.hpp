// The TCP links of a data plane, polled by its thread without waiting for readiness events.
#pragma once

#include <poll.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

#include "worker/links/tcp_link.hpp"

namespace chorus::engine {

// Used on the data thread only.
class TcpLinks {
 public:
  // What a link carries towards this worker: small messages that a caller waits for, or large messages and control
  // frames, of which every look finds some.
  enum class Brings { small_messages, others };

  // `brings` decides how often the link is polled.
  std::shared_ptr<links::Link> add(std::shared_ptr<links::TcpLink> link, Brings brings) {
    sweep();
    (brings == Brings::small_messages ? bring_small_ : bring_others_).push_back(link);
    return link;
  }

  // Drops closed links.
  void sweep() {
    for (auto* links : {&bring_small_, &bring_others_})
      std::erase_if(*links, [](auto const& link) { return link->is_gone(); });
  }

  // Reading a few sockets costs less than having the loop report which are ready, and re-arming them.
  [[nodiscard]] bool are_few() const { return !awaited().empty() && awaited().size() <= few; }

  // Reads what has arrived; false if nothing has. A single link is simply read. Several are first asked with one
  // poll(), because most are not ready.
  bool poll(unsigned round) {
    if (awaited().size() > 1) return poll_ready();
    bool const moved = poll(awaited());
    if (bring_small_.empty() || round % (round - other_moved_ < lately ? 2 : 16) != 0) return moved;
    if (!poll(bring_others_)) return moved;
    other_moved_ = round;
    return true;
  }

 private:
  using Links = std::vector<std::shared_ptr<links::TcpLink>>;
  static constexpr std::size_t few = 8;
  static constexpr unsigned lately = 4096;  // rounds

  [[nodiscard]] Links const& awaited() const { return bring_small_.empty() ? bring_others_ : bring_small_; }

  static bool poll(Links const& links) {
    bool moved = false;
    for (auto const& link : links) moved = link->poll() || moved;
    return moved;
  }

  bool poll_ready() {
    asked_.clear();
    for (auto const* links : {&bring_small_, &bring_others_})
      for (auto const& link : *links) asked_.push_back({link->handle(), POLLIN, 0});
    if (::poll(asked_.data(), asked_.size(), 0) <= 0) return false;
    bool moved = false;
    std::size_t at = 0;
    for (auto const* links : {&bring_small_, &bring_others_})
      for (auto const& link : *links)
        if (asked_[at++].revents != 0) moved = link->poll() || moved;
    return moved;
  }

  Links bring_small_, bring_others_;
  unsigned other_moved_ = 0;  // round
  std::vector<pollfd> asked_;
};

}  // namespace chorus::engine
