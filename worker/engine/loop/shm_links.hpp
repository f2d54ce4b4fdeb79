// The shared memory links of a data plane: their handshakes and their polling.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "worker/engine/program/run_spec.hpp"
#include "worker/engine/trace/traffic.hpp"
#include "worker/links/shm/shm_link.hpp"
#include "worker/memory/regions/region_registry.hpp"

namespace chorus::engine {

// Used on the data thread, except where noted.
class ShmLinks {
 public:
  // Arena and traffic book outlive the object. Without an arena there are no such links.
  ShmLinks(memory::Arena* arena, TrafficBook& traffic) : arena_(arena), traffic_(traffic) {}

  // The offer for a handshake with this peer; empty if shared memory cannot be used. The reason is in the book then.
  [[nodiscard]] std::optional<links::ShmOffer> offer(Peer const& peer);
  // Whether the peer has accepted the offer. Errors: LinkErrc::bad_handshake.
  [[nodiscard]] Result<bool> is_accepted(Peer const& peer, http::Fields const& fields);

  // Any thread. The answer to a peer's offer, or to a peer that made none.
  struct Accepted {
    std::shared_ptr<links::ShmLoan> loan;  // null: no shared memory
    links::SharedMemoryAnswer answer;
  };
  // Errors: LinkErrc::bad_handshake.
  [[nodiscard]] Result<Accepted> accept(links::Introduction const& peer);

  std::shared_ptr<links::Link> add(std::shared_ptr<links::ShmLink> link);

  [[nodiscard]] bool empty() const { return links_.empty(); }
  // Polls all links; false if nothing moved.
  bool poll();
  // True: peers will ring when they have written. False: something can be read now.
  [[nodiscard]] bool fall_asleep();
  void wake_up();
  // Stops waiting for any peer.
  void let_go();

 private:
  memory::Arena* const arena_;
  TrafficBook& traffic_;
  memory::RegionRegistry regions_;
  // Incarnations of workers that declined for good: nothing can change until they restart.
  std::map<std::string, std::uint64_t> declined_by_;
  std::vector<std::shared_ptr<links::ShmLink>> links_;
};

}  // namespace chorus::engine
