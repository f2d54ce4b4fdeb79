// Creates links: both sides of the handshake with a peer, and the kind of link that results.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <optional>

#include "http/client/client.hpp"
#include "http/message/message.hpp"
#include "worker/engine/loop/shm_links.hpp"
#include "worker/engine/loop/tcp_links.hpp"
#include "worker/engine/transport/connection.hpp"
#include "worker/engine/transport/data_plane_options.hpp"
#include "worker/links/handshake.hpp"

namespace chorus::engine {

// Used on the data thread, except where noted. The constructor's arguments outlive the object.
class LinkHandshakes {
 public:
  LinkHandshakes(DataPlaneOptions const& options, boost::asio::io_context& context, http::Client& client, ShmLinks& shm,
                 TcpLinks& tcp)
      : options_(options), context_(context), client_(client), shm_(shm), tcp_(tcp) {}

  struct Made {
    std::shared_ptr<links::Link> link;
    bool lends = false;                 // both ends agree that opens lend memory of GPUs
    std::shared_ptr<links::Link> back;  // second link on the same connection; null if there is none
  };
  // Asks the peer for a link to send on. Completes later, not from within the call. Errors: LinkErrc, naming the URL.
  boost::asio::awaitable<Result<Made>> dial(Peer peer, http::TimePoint deadline);

  // A connection that a peer has dialed, and what the handshake agreed on.
  struct Incoming {
    http::Connection connection;
    Identity peer;
    std::shared_ptr<links::ShmLoan> loan;  // null: no shared memory
    links::Framing framing;
    bool lends = false;
    bool both_ways = false;
  };
  // Any thread. The response to a peer that asks for a link: 101, after which `adopt` gets the connection on any
  // thread, or a problem.
  [[nodiscard]] http::Response welcome(links::Introduction const& peer, std::function<void(Incoming)> adopt);
  // Creates the link to receive on.
  [[nodiscard]] Made take(Incoming incoming);

 private:
  [[nodiscard]] Result<std::shared_ptr<links::Link>> link_of(Peer const& peer, http::Client::Upgraded upgraded,
                                                             std::optional<links::ShmOffer> offer, bool both_ways);
  [[nodiscard]] bool insists_on_checksums() const { return options_.checksums == links::ChecksumMode::on; }

  DataPlaneOptions const& options_;
  boost::asio::io_context& context_;
  http::Client& client_;
  ShmLinks& shm_;
  TcpLinks& tcp_;
};

}  // namespace chorus::engine
