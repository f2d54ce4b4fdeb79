#include "worker/service/cluster/link_list.hpp"

#include "http/api/cluster/links.hpp"
#include "http/json/json.hpp"

namespace chorus::service {

void LinkList::add_to(http::Router& router) {
  router.add(http::Method::get, "/v1/links", http::Access::read,
             [this](http::Request const&, http::Body&) { return list(); });
}

boost::asio::awaitable<http::Response> LinkList::list() {
  api::PeerLinkList list;
  for (auto const& peer : plane_.traffic()) {
    auto& item = list.items.emplace_back();
    item.worker = peer.worker;
    item.link = peer.link.empty() ? "none" : peer.link;
    item.connections = peer.connections;
    if (!peer.why_not_shm.empty()) item.why_not_shm = peer.why_not_shm;
    if (!peer.why_not_ipc.empty()) item.why_not_ipc = peer.why_not_ipc;
    item.sent_bytes = peer.sent_bytes;
    item.received_bytes = peer.received_bytes;
    item.send_busy_seconds = peer.send_busy_seconds;
  }
  co_return http::Response::json(200, http::encode(list));
}

}  // namespace chorus::service
