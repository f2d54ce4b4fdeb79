#include "worker/service/cluster/link_route.hpp"

#include "worker/links/handshake.hpp"

namespace chorus::service {
namespace {

using http::Problem;
using http::ProblemCode;

http::Checked<links::Introduction> introduction_of(http::Request const& request, Identity const& self) {
  auto peer = links::read_introduction(request.fields);
  if (!peer) return Problem(ProblemCode::bad_request, peer.error().detail);
  if (!is_valid_worker_id(peer->worker)) return Problem(ProblemCode::bad_request, "Chorus-Worker is not a worker id");
  if (peer->worker == self.id)
    return Problem(ProblemCode::bad_request, "the peer has the name of this worker, " + self.id);
  return std::move(*peer);
}

}  // namespace

void LinkRoute::add_to(http::Router& router) {
  router.add(http::Method::get, links::link_path, http::Access::join,
             [this](http::Request const& request, http::Body&) { return upgrade(request); });
}

boost::asio::awaitable<http::Response> LinkRoute::upgrade(http::Request const& request) {
  auto const peer = introduction_of(request, identity_);
  if (!peer) co_return peer.error();
  co_return plane_.welcome(*peer);
}

}  // namespace chorus::service
