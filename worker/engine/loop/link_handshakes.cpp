#include "worker/engine/loop/link_handshakes.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "worker/links/frames/errc.hpp"
#include "worker/links/tcp_link.hpp"
#include "worker/links/two_way.hpp"

namespace chorus::engine {
namespace {

namespace asio = boost::asio;

links::Framing framing_of(bool has_checksums) {
  return has_checksums ? links::Framing::checksummed : links::Framing::plain;
}

TcpLinks::Brings brings(bool small_messages) {
  return small_messages ? TcpLinks::Brings::small_messages : TcpLinks::Brings::others;
}

std::optional<links::SharedMemory> described(std::optional<links::ShmOffer> const& offer) {
  return offer ? std::optional(offer->described()) : std::nullopt;
}

LinkHandshakes::Made made_of(std::shared_ptr<links::Link> link, bool lends, bool both_ways) {
  if (!both_ways) return {std::move(link), lends, nullptr};
  auto [there, back] = links::two_way(std::move(link));
  return {std::move(there), lends, std::move(back)};
}

}  // namespace

http::Response LinkHandshakes::welcome(links::Introduction const& peer, std::function<void(Incoming)> adopt) {
  auto loan = shm_.accept(peer);
  if (loan.has_error()) return http::Problem(http::ProblemCode::bad_request, loan.error().detail);
  bool const has_checksums = !loan->answer.accepted && links::takes_checksums(options_.checksums, peer.checksums);
  if (!loan->answer.accepted && !has_checksums && insists_on_checksums())
    return http::Problem(http::ProblemCode::bad_request,
                         options_.worker + " takes links with checksums only (--link-checksum on)");
  bool const lends = options_.lending_host && peer.lending_host == options_.lending_host;
  bool const both_ways = peer.both_ways && !loan->answer.accepted;
  auto take_over = [this, adopt = std::move(adopt), who = Identity{peer.worker, peer.incarnation}, loan = loan->loan,
                    framing = framing_of(has_checksums), lends, both_ways](http::Connection connection) {
    boost::system::error_code error;
    auto const protocol = connection.socket.local_endpoint(error).protocol();
    auto const handle = error ? -1 : connection.socket.release(error);
    if (error) return;  // the peer has gone; it dials again when it needs the link
    // The connection owns the socket from here on, even if the loop never runs the work.
    http::Connection moved{asio::ip::tcp::socket(context_, protocol, handle), std::move(connection.tls),
                           std::move(connection.early_bytes)};
    adopt({std::move(moved), who, loan, framing, lends, both_ways});
  };
  return links::switch_protocols(
      std::move(take_over), {loan->answer, has_checksums, lends ? options_.lending_host : std::nullopt, both_ways});
}

LinkHandshakes::Made LinkHandshakes::take(Incoming incoming) {
  auto& [here, peer, loan, framing, lends, both_ways] = incoming;
  // With shared memory the connection carries only wake-ups, which need no TLS.
  if (loan) return {shm_.add(std::make_shared<links::ShmLink>(std::move(here.socket), std::move(*loan))), lends, {}};
  bool const has_small = !both_ways || links::is_for_small(peer.worker, options_.worker);
  auto link = tcp_.add(std::make_shared<links::TcpLink>(std::move(here), framing), brings(has_small));
  return made_of(std::move(link), lends, both_ways);
}

asio::awaitable<Result<LinkHandshakes::Made>> LinkHandshakes::dial(Peer peer, http::TimePoint deadline) {
  co_await asio::post(asio::use_awaitable);
  auto offer = shm_.offer(peer);
  // Named, because g++ 12 destroys an aggregate temporary of a full expression with co_await twice.
  auto introduction =
      links::to_fields({options_.worker, options_.incarnation, described(offer),
                        links::checksum_offer(options_.checksums, peer.url), options_.lending_host, true});
  auto upgraded = co_await client_.upgrade(peer.url + std::string(links::link_path), std::string(links::link_protocol),
                                           std::move(introduction), deadline);
  if (upgraded.has_error()) co_return Error(links::LinkErrc::closed, upgraded.error().detail);
  bool const lends = options_.lending_host && links::read_borrows_answer(upgraded->fields) == options_.lending_host;
  bool const both_ways = links::read_both_ways_answer(upgraded->fields);
  auto link = link_of(peer, std::move(*upgraded), std::move(offer), both_ways);
  if (link.has_error()) co_return link.error();
  co_return made_of(std::move(*link), lends, both_ways);
}

Result<std::shared_ptr<links::Link>> LinkHandshakes::link_of(Peer const& peer, http::Client::Upgraded upgraded,
                                                             std::optional<links::ShmOffer> offer, bool both_ways) {
  if (offer) {
    auto const accepted = shm_.is_accepted(peer, upgraded.fields);
    if (accepted.has_error()) return accepted.error();
    if (*accepted)
      return shm_.add(std::make_shared<links::ShmLink>(std::move(upgraded.connection.socket), std::move(*offer)));
  }
  auto const has_checksums = links::read_checksums_answer(upgraded.fields);
  if (has_checksums.has_error()) return has_checksums.error();
  if (!*has_checksums && insists_on_checksums())
    return Error(links::LinkErrc::bad_handshake,
                 peer.url + " does not take links with checksums (--link-checksum off, or an older build)");
  auto const framing = framing_of(*has_checksums);
  return tcp_.add(std::make_shared<links::TcpLink>(std::move(upgraded.connection), framing),
                  brings(both_ways && links::is_for_small(options_.worker, peer.worker)));
}

}  // namespace chorus::engine
