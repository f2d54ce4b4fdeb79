#include "worker/engine/loop/shm_links.hpp"

#include <atomic>
#include <string>
#include <string_view>
#include <utility>

#include "worker/links/frames/errc.hpp"
#include "worker/memory/pages/errc.hpp"

namespace chorus::engine {
namespace {

// Prefix of the reason when a worker lacks descriptors, memory or addresses now, but may have them at the next dial.
constexpr std::string_view for_now = "for now: ";

}  // namespace

std::optional<links::ShmOffer> ShmLinks::offer(Peer const& peer) {
  if (arena_ == nullptr) return std::nullopt;
  if (auto const who = declined_by_.find(peer.worker); who != declined_by_.end() && who->second == peer.incarnation)
    return std::nullopt;
  auto made = links::ShmOffer::make(*arena_);
  if (made.has_value()) return std::move(*made);
  traffic_.set_why_not_shm(peer.worker, Direction::to_peer, "no shared memory here: " + made.error().detail);
  return std::nullopt;
}

Result<bool> ShmLinks::is_accepted(Peer const& peer, http::Fields const& fields) {
  auto const answer = links::read_answer(fields);
  if (answer.has_error()) return Error(answer.error().code, peer.url + ": " + answer.error().detail);
  if (answer->accepted) {
    traffic_.set_why_not_shm(peer.worker, Direction::to_peer, "");
    return true;
  }
  if (!answer->why_not.starts_with(for_now)) declined_by_[peer.worker] = peer.incarnation;
  traffic_.set_why_not_shm(peer.worker, Direction::to_peer, answer->why_not);
  return false;
}

Result<ShmLinks::Accepted> ShmLinks::accept(links::Introduction const& peer) {
  if (!peer.shared_memory || arena_ == nullptr) return Accepted{};
  auto const decline = [&](Error const& why) {
    traffic_.set_why_not_shm(peer.worker, Direction::from_peer, why.detail);
    bool const passes = why.code == memory::MemoryErrc::unavailable;
    return Accepted{nullptr, {false, (passes ? std::string(for_now) : std::string()) + why.detail}};
  };
  auto region = regions_.open(peer.shared_memory->ticket);
  if (region.has_error()) return decline(region.error());
  auto loan = links::ShmLoan::take(std::move(*region), peer.shared_memory->offset);
  if (loan.has_error() && loan.error().code == links::LinkErrc::bad_handshake) return loan.error();
  if (loan.has_error()) return decline(loan.error());
  traffic_.set_why_not_shm(peer.worker, Direction::from_peer, "");
  return Accepted{std::make_shared<links::ShmLoan>(std::move(*loan)), {true, {}}};
}

std::shared_ptr<links::Link> ShmLinks::add(std::shared_ptr<links::ShmLink> link) {
  links_.push_back(link);
  return link;
}

bool ShmLinks::poll() {
  bool moved = false;
  bool any_gone = false;
  for (auto const& link : links_) {
    moved = link->poll() || moved;
    any_gone = any_gone || link->is_gone();
  }
  if (any_gone) std::erase_if(links_, [](auto const& link) { return link->is_gone(); });
  return moved;
}

bool ShmLinks::fall_asleep() {
  for (auto const& link : links_) link->announce_sleep();
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return !poll();
}

void ShmLinks::wake_up() {
  for (auto const& link : links_) link->awake();
}

void ShmLinks::let_go() {
  for (auto const& link : links_) link->let_go();
  links_.clear();
}

}  // namespace chorus::engine
