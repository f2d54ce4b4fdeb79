// The connections of an engine: dialing, accepting, and the choice of the connection for a run's messages.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "worker/engine/trace/traffic.hpp"
#include "worker/engine/transport/receive_connection.hpp"
#include "worker/engine/transport/send_connection.hpp"
#include "worker/engine/transport/surroundings.hpp"

namespace chorus::engine {

// Used on the data thread only. The constructor's arguments outlive the table. Closed connections stay until reap().
class ConnectionTable {
 public:
  using TimePoint = Clock::TimePoint;
  using Sends = std::map<std::uint64_t, std::unique_ptr<SendConnection>>;
  using Receives = std::vector<std::unique_ptr<ReceiveConnection>>;

  // worker: id of this engine's worker.
  ConnectionTable(ConnectionOwner& owner, std::string worker, Surroundings& surroundings, TrafficBook& traffic)
      : owner_(owner), worker_(std::move(worker)), surroundings_(surroundings), traffic_(traffic) {}
  ConnectionTable(ConnectionTable const&) = delete;
  ConnectionTable& operator=(ConnectionTable const&) = delete;

  [[nodiscard]] Receives& receives() { return receives_; }
  [[nodiscard]] std::size_t size() const { return sends_.size() + receives_.size(); }

  // Adds a link that a peer has dialed. `back`: second link on the same connection, for messages to the peer; null if
  // there is none.
  ReceiveConnection& adopt(std::shared_ptr<links::Link> link, Identity peer, bool lends,
                           std::shared_ptr<links::Link> back);
  // True if the send connection of this number still waits for its link.
  [[nodiscard]] bool awaits(std::uint64_t number) const;
  // Result of the dial of a send connection that awaits() it. `back`: second link, for messages from the peer.
  void dialed(std::uint64_t number, Result<std::shared_ptr<links::Link>> link, bool lends,
              std::shared_ptr<links::Link> back);

  [[nodiscard]] SendConnection& to(Peer const& peer, TimePoint deadline);
  // Small messages of both directions share one connection, which the worker with the smaller name has dialed.
  [[nodiscard]] SendConnection& for_channel(SendChannel const& channel, Peer const& peer, TimePoint deadline);
  [[nodiscard]] SendConnection* find_for(SendChannel const& channel, Peer const& peer);  // null: still to be dialed
  [[nodiscard]] SendConnection* find_for_small(Peer const& peer);                        // the same

  // The connections for small messages to and from a peer that is not fenced; null: none. They are looked for anew only
  // if connections have come or gone since `known` was found.
  struct Route {
    SendConnection* to = nullptr;
    ReceiveConnection* from = nullptr;
    std::uint64_t as_of = 0;
  };
  Route const& find_route(Route& known, Peer const& peer) {
    if (known.as_of != changes_) look_for_route(known, peer);
    return known;
  }

  // Closes connections of other incarnations of the worker; they are fenced from now on.
  void fence(std::string const& worker, std::uint64_t incarnation);
  [[nodiscard]] bool is_fenced(Identity const& peer) const;
  [[nodiscard]] bool fences_any() const { return !current_incarnation_.empty(); }

  void fail_all(Error const& why);
  void reap();

 private:
  void look_for_route(Route& known, Peer const& peer);
  [[nodiscard]] SendConnection* find_to(Peer const& peer);
  [[nodiscard]] ReceiveConnection* find_from(Peer const& peer);
  [[nodiscard]] SendConnection& dial(Peer const& peer, TimePoint deadline);
  // A dial has the deadline of the run that needed it first. If that has passed and other runs wait for the link, it is
  // dialed again for them.
  [[nodiscard]] bool dials_again(std::uint64_t number, SendConnection& send_connection);

  ConnectionOwner& owner_;
  std::string const worker_;
  Surroundings& surroundings_;
  TrafficBook& traffic_;
  Sends sends_;
  Receives receives_;
  std::uint64_t next_send_ = 1, next_receive_ = 1;
  std::uint64_t changes_ = 1;                                 // count
  std::map<std::string, std::uint64_t> current_incarnation_;  // by id of fenced workers
};

}  // namespace chorus::engine
