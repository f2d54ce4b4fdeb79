// The links of a data plane that go through shared memory: how they come to be, and their polling.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "worker/engine/data_plane.hpp"
#include "worker/engine/traffic.hpp"
#include "worker/links/shm_link.hpp"
#include "worker/memory/region_book.hpp"

namespace chorus::engine {

// On the data thread, where nothing else is said.
class ShmLinks {
 public:
  // Both outlive it. Without an arena there are no such links.
  ShmLinks(memory::Arena* arena, TrafficBook& traffic) : arena_(arena), traffic_(traffic) {}

  // For a handshake with this peer; nothing if it is useless. The reason is in the book then.
  [[nodiscard]] std::optional<links::ShmOffer> offer(Peer const& peer);
  // What became of it. Errors: LinkErrc::bad_handshake.
  [[nodiscard]] Result<bool> is_accepted(Peer const& peer, http::Fields const& fields);

  // Any thread. A peer's offer, or that it made none.
  struct Accepted {
    std::shared_ptr<links::ShmLoan> loan;  // null: not this way
    links::SharedMemoryAnswer answer;
  };
  // Errors: LinkErrc::bad_handshake.
  [[nodiscard]] Result<Accepted> accept(links::Introduction const& peer);

  std::shared_ptr<links::Link> add(std::shared_ptr<links::ShmLink> link);

  [[nodiscard]] bool empty() const { return links_.empty(); }
  // Moves what can be moved; false if there was nothing.
  bool poll();
  // True: the peers will ring when there is something. False: there is something now.
  [[nodiscard]] bool fall_asleep();
  void wake_up();
  // Waits for no peer any more.
  void let_go();

 private:
  memory::Arena* const arena_;
  TrafficBook& traffic_;
  memory::RegionBook regions_;
  // Worker to its incarnation, which will not change its mind: it lacks nothing that it may have later.
  std::map<std::string, std::uint64_t> declined_by_;
  std::vector<std::shared_ptr<links::ShmLink>> links_;
};

}  // namespace chorus::engine
