#include "worker/engine/testing/tcp_fleet.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>

#include "worker/links/handshake.hpp"

namespace chorus::engine::testing {

namespace asio = boost::asio;

TcpFleet::TcpFleet(std::uint32_t ranks, DataPlaneOptions options, Arenas arenas, Tensors tensors, Doubles gpus)
    : arenas_(std::move(arenas)), tensors_(tensors), gpus_(std::move(gpus)), work_(asio::make_work_guard(io_)) {
  for (plan::Rank rank = 0; rank < ranks; ++rank) {
    auto& member = *members_.emplace_back(std::make_unique<Member>());
    options.worker = "w" + std::to_string(rank);
    options.incarnation = 100 + rank;
    options.arena = rank < arenas_.size() ? arenas_[rank].get() : nullptr;
    member.plane = std::make_unique<DataPlane>(options);
    member.router.add(http::Method::get, links::link_path, http::Access::open,
                      [&member](http::Request const& request, http::Body& body) { return member.link(request, body); });
    member.server = std::make_unique<http::Server>(io_.get_executor(), member.router, http::ServerLimits{},
                                                   [](http::Exchange const&) {});
    member.port = member.server->listen("127.0.0.1", 0).value();
  }
  thread_ = std::thread([this] { io_.run(); });
}

TcpFleet::~TcpFleet() {
  asio::co_spawn(io_, stop_servers(), asio::use_future).get();
  for (auto& member : members_) member->plane.reset();
  work_.reset();
  thread_.join();
}

asio::awaitable<void> TcpFleet::stop_servers() {
  for (auto& member : members_) {
    co_await member->server->stop();
    member->server.reset();
  }
}

asio::awaitable<http::Response> TcpFleet::Member::link(http::Request const& request, http::Body&) {
  auto peer = links::read_introduction(request.fields);
  if (peer.has_error()) co_return http::Problem(http::ProblemCode::bad_request, peer.error().detail);
  co_return plane->welcome(*peer);
}

GroupMembership TcpFleet::membership(std::string name, plan::Rank rank) const {
  GroupMembership membership;
  membership.name = std::move(name);
  membership.rank = rank;
  for (plan::Rank r = 0; r < ranks(); ++r) membership.members.push_back(peer(r));
  return membership;
}

Peer TcpFleet::peer(plan::Rank rank) const {
  return {rank, "w" + std::to_string(rank), 100 + rank, "http://127.0.0.1:" + std::to_string(members_[rank]->port)};
}

Buffer TcpFleet::allocate(plan::Rank rank, std::size_t bytes) {
  if (gpu(rank) != nullptr) return allocate_on(gpus_[rank], bytes);
  bool const in_arena = tensors_ == Tensors::in_arenas && rank < arenas_.size() && arenas_[rank] != nullptr;
  return in_arena ? allocate_in(arenas_[rank], bytes) : Fleet::allocate(rank, bytes);
}

void TcpFleet::start(plan::Rank rank, RunSpec spec, RunDone done) {
  members_[rank]->plane->start(std::move(spec), std::move(done));
}

bool TcpFleet::run_until(std::atomic<std::size_t> const& ended, std::size_t count) {
  for (auto now = ended.load(); now < count; now = ended.load()) ended.wait(now);
  return true;
}

}  // namespace chorus::engine::testing
