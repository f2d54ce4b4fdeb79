// The engine's part with links: who dials, who is answered, and which one a run's messages go on.
#include <utility>

#include "worker/engine/engine.hpp"
#include "worker/links/two_way.hpp"

namespace chorus::engine {

bool Engine::is_fenced(Identity const& peer) const {
  auto const current = current_incarnation_.find(peer.worker);
  return current != current_incarnation_.end() && current->second != peer.incarnation;
}

void Engine::adopt(std::shared_ptr<links::Link> link, Identity peer, bool lends, std::shared_ptr<links::Link> back) {
  {
    Hold const hold(*this);
    auto& inlet = *inlets_.emplace_back(std::make_unique<Inlet>(*this, std::move(peer), next_inlet_++));
    inlet.attach(std::move(link), lends);
    if (back) {
      auto outlet = std::make_unique<Outlet>(*this, inlet.peer(), std::string());
      outlets_.emplace(next_outlet_++, std::move(outlet))
          .first->second->attach(std::move(back), false, Connection::Place::beside);
    }
    if (shut_down_)
      inlet.refuse_link(EngineErrc::aborted, options_.worker + " stops");
    else if (is_fenced(inlet.peer()))
      inlet.refuse_link(EngineErrc::epoch_fenced, "a newer incarnation is known");
  }
  settle();
}

void Engine::fence(std::string const& worker, std::uint64_t incarnation) {
  std::optional<Hold> hold(std::in_place, *this);
  current_incarnation_[worker] = incarnation;
  auto const is_old = [&](Connection const& c) {
    return c.peer().worker == worker && c.peer().incarnation != incarnation;
  };
  for (auto& inlet : inlets_)
    if (is_old(*inlet)) inlet->refuse_link(EngineErrc::epoch_fenced, "a newer incarnation is known");
  for (auto& [id, outlet] : outlets_)
    if (is_old(*outlet)) outlet->fail(Error(EngineErrc::epoch_fenced, worker + " has a newer incarnation"));
  hold.reset();
  settle();
}

Outlet& Engine::outlet_for(SendChannel const& channel, Peer const& peer, TimePoint deadline) {
  auto* const found = find_outlet_for(channel, peer);
  return found != nullptr ? *found : dial(peer, deadline);
}

Outlet* Engine::find_outlet_for(SendChannel const& channel, Peer const& peer) {
  if (channel.is_small() && links::is_for_small(peer.worker, options_.worker))
    for (auto found = outlets_.rbegin(); found != outlets_.rend(); ++found)
      if (auto& outlet = found->second; outlet->is_accepted() && !outlet->is_closed() &&
                                        outlet->peer().worker == peer.worker &&
                                        outlet->peer().incarnation == peer.incarnation)
        return outlet.get();
  return find_outlet_to(peer);
}

Outlet& Engine::outlet_to(Peer const& peer, TimePoint deadline) {
  auto* const found = find_outlet_to(peer);
  return found != nullptr ? *found : dial(peer, deadline);
}

Outlet* Engine::find_outlet_to(Peer const& peer) {
  for (auto& [id, outlet] : outlets_)
    if (!outlet->is_closed() && outlet->peer().worker == peer.worker &&
        outlet->peer().incarnation == peer.incarnation && outlet->url() == peer.url)
      return outlet.get();
  return nullptr;
}

Outlet& Engine::dial(Peer const& peer, TimePoint deadline) {
  auto const id = next_outlet_++;
  auto& outlet =
      *outlets_.emplace(id, std::make_unique<Outlet>(*this, Identity{peer.worker, peer.incarnation}, peer.url))
           .first->second;
  traffic_.of(peer.worker).dialed();
  surroundings_.dial(id, peer, deadline);
  return outlet;
}

void Engine::dialed(std::uint64_t id, Result<std::shared_ptr<links::Link>> link, bool lends,
                    std::shared_ptr<links::Link> back) {
  auto const found = outlets_.find(id);
  bool const wanted = found != outlets_.end() && !found->second->is_closed();
  if (!wanted) {
    if (link.has_value()) (*link)->close();
    return;
  }
  {
    Hold const hold(*this);
    auto& outlet = *found->second;
    if (link.has_value())
      outlet.attach(std::move(*link), lends);
    else
      outlet.fail(link.error());
    if (back)
      inlets_.emplace_back(std::make_unique<Inlet>(*this, outlet.peer(), next_inlet_++))
          ->attach(std::move(back), false, Connection::Place::beside);
  }
  settle();
}

Connection& Engine::connection_to(Run& run, plan::Rank rank) {
  for (auto const& channel : run.receives())
    if (channel->peer() == rank && channel->inlet != nullptr) return *channel->inlet;
  for (auto const& channel : run.sends())
    if (channel->peer() == rank && channel->outlet != nullptr) return *channel->outlet;
  auto const& peer = run.spec().members[rank];
  auto& outlet = outlet_to(peer, run.spec().deadline);
  outlet.depends(run.spec().run);
  return outlet;
}

}  // namespace chorus::engine
