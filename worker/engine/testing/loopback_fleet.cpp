#include "worker/engine/testing/loopback_fleet.hpp"

#include "worker/links/frames/errc.hpp"
#include "worker/links/two_way.hpp"

namespace chorus::engine::testing {

namespace {

using boost::asio::ip::tcp;

std::pair<tcp::socket, tcp::socket> socket_pair(boost::asio::io_context& io) {
  tcp::acceptor acceptor(io, tcp::endpoint(boost::asio::ip::address_v4::loopback(), 0));
  tcp::socket here(io);
  here.connect(acceptor.local_endpoint());
  auto there = acceptor.accept();
  return {std::move(here), std::move(there)};
}

}  // namespace

LoopbackFleet::LoopbackFleet(FleetOptions options)
    : gpus_(std::move(options.gpus)),
      network_(options.network),
      arenas_(std::move(options.arenas)),
      tensors_(options.tensors),
      lends_gpu_memory_(options.lends_gpu_memory),
      both_ways_(options.both_ways),
      random_(options.network.seed) {
  for (plan::Rank rank = 0; rank < options.ranks; ++rank) {
    DataPlaneOptions plane;
    plane.worker = "w" + std::to_string(rank);
    plane.incarnation = 100 + rank;
    plane.eager_bytes = options.eager_bytes;
    plane.partials_bytes = options.partials_bytes;
    plane.early_runs = options.early_runs;
    plane.early_bytes = options.early_bytes;
    if (lends_gpu_memory_) plane.lending_host = 1;
    if (!arenas_.empty()) plane.arena = arenas_[rank].get();
    members_.push_back(std::make_unique<Member>(*this, rank, std::move(plane)));
  }
}

LoopbackFleet::~LoopbackFleet() {
  for (auto& member : members_) member->engine.shut_down();
  for (auto& end : shm_ends_) end.link->let_go();
}

devices::GpuUnit* LoopbackFleet::gpu(plan::Rank rank) const { return unit_of(gpus_, rank); }

Buffer LoopbackFleet::allocate(plan::Rank rank, std::size_t bytes) {
  if (gpu(rank) != nullptr) return allocate_on(gpus_[rank], bytes);
  bool const in_arena = tensors_ == Tensors::in_arenas && !arenas_.empty();
  return in_arena ? allocate_in(arenas_[rank], bytes) : Fleet::allocate(rank, bytes);
}

Peer LoopbackFleet::peer(plan::Rank rank) const {
  return {rank, "w" + std::to_string(rank), 100 + rank, "loopback:" + std::to_string(rank)};
}

void LoopbackFleet::start(plan::Rank rank, RunSpec spec, RunDone done) {
  auto& member = *members_[rank];
  if (spec.gpu != nullptr) return member.engine.start(std::move(spec), std::move(done));
  member.engine.start(member.kinds.of(spec), Kinds::call_of(spec), std::move(done));
}

bool LoopbackFleet::step() {
  if (!gpus_.empty() && random_() % 2 == 0 && step_devices()) return true;
  if (later_.empty()) return network_.step() || step_shm() || io_.poll() != 0 || step_devices();
  auto const next = std::move(later_.front());
  later_.pop_front();
  next();
  return true;
}

// Returns true if a GPU did some work, even if no engine waits for that work.
bool LoopbackFleet::step_devices() {
  auto const from = gpus_.empty() ? 0 : random_() % gpus_.size();
  for (std::size_t i = 0; i < gpus_.size(); ++i) {
    auto const rank = static_cast<plan::Rank>((from + i) % gpus_.size());
    if (gpus_[rank] == nullptr || stopped_.contains(rank)) continue;
    auto const before = gpus_[rank]->gpu.operations();
    if (members_[rank]->engine.poll_devices() || gpus_[rank]->gpu.operations() != before) return true;
  }
  return false;
}

bool LoopbackFleet::step_shm() {
  std::erase_if(shm_ends_, [](auto const& end) { return end.link->is_gone(); });
  auto const from = shm_ends_.empty() ? 0 : random_() % shm_ends_.size();
  auto const count = shm_ends_.size();
  for (std::size_t i = 0; i < count; ++i) {
    auto const end = shm_ends_[(from + i) % count];
    if (!stopped_.contains(end.rank) && end.link->poll()) return true;
  }
  return false;
}

bool LoopbackFleet::run_until(std::atomic<std::size_t> const& ended, std::size_t count) {
  while (ended < count)
    if (!step()) return false;
  return true;
}

void LoopbackFleet::let_move() {
  while (step()) {}
}

void LoopbackFleet::let_move(std::size_t steps) {
  while (steps-- != 0 && step()) {}
}

void LoopbackFleet::pass(std::chrono::milliseconds time) {
  now_ += time;
  for (auto& member : members_)
    if (!member->dead && !stopped_.contains(member->rank)) member->engine.check_deadlines();
}

void LoopbackFleet::stop(plan::Rank rank) {
  stopped_.insert(rank);
  for (auto const& end : network_ends_)
    if (auto const link = end.link.lock(); link && end.rank == rank) network_.stop(*link);
}

void LoopbackFleet::go_on(plan::Rank rank) {
  stopped_.erase(rank);
  for (auto const& end : network_ends_)
    if (auto const link = end.link.lock(); link && end.rank == rank) network_.go_on(*link);
}

void LoopbackFleet::kill(plan::Rank rank) {
  members_[rank]->dead = true;
  for (auto const& wire : wires_)
    if (auto const link = wire.link.lock(); link && (wire.from == rank || wire.to == rank)) network_.cut(*link);
  for (auto& end : shm_ends_)
    if (end.rank == rank) end.link->let_go();
}

void LoopbackFleet::cut(plan::Rank from, plan::Rank to) {
  for (auto const& wire : wires_)
    if (auto const link = wire.link.lock(); link && wire.from == from && wire.to == to) network_.cut(*link);
}

void LoopbackFleet::Member::dial(std::uint64_t send_connection, Peer const& peer, TimePoint) {
  fleet.later_.push_back([this, send_connection, peer] { fleet.connect(*this, send_connection, peer); });
}

void LoopbackFleet::Member::settle_soon() {
  fleet.later_.push_back([this] { engine.settle(); });
}

void LoopbackFleet::Member::watch_soon() {
  fleet.later_.push_back([this] { engine.watch_receives(true); });
}

void LoopbackFleet::connect(Member& from, std::uint64_t send_connection, Peer const& peer) {
  if (from.dead) return;
  auto& to = *members_[peer.rank];
  if (to.dead)
    return from.engine.dialed(send_connection, Error(links::LinkErrc::closed, peer.url + ": connection refused"));
  if (stopped_.contains(peer.rank)) return;  // the kernel accepts the connection, and the stopped process never answers
  if (auto const pair = shm_pair(from.rank, peer.rank)) {
    to.engine.adopt(pair->acceptor, {"w" + std::to_string(from.rank), 100 + from.rank}, lends_gpu_memory_);
    return from.engine.dialed(send_connection, std::shared_ptr<links::Link>(pair->dialer), lends_gpu_memory_);
  }
  auto [here, there] = network_.connect();
  wires_.push_back({from.rank, peer.rank, here});
  network_ends_.push_back({from.rank, here});
  network_ends_.push_back({peer.rank, there});
  Identity const dialer{"w" + std::to_string(from.rank), 100 + from.rank};
  if (impersonated == peer.rank) {
    on_dial(std::move(there));
    return from.engine.dialed(send_connection, std::move(here), lends_gpu_memory_);
  }
  if (!both_ways_) {
    to.engine.adopt(std::move(there), dialer, lends_gpu_memory_);
    return from.engine.dialed(send_connection, std::move(here), lends_gpu_memory_);
  }
  auto acceptor = links::two_way(std::move(there));
  to.engine.adopt(std::move(acceptor.there), dialer, lends_gpu_memory_, std::move(acceptor.back));
  auto dialed = links::two_way(std::move(here));
  from.engine.dialed(send_connection, std::move(dialed.there), lends_gpu_memory_, std::move(dialed.back));
}

std::optional<LoopbackFleet::Pair> LoopbackFleet::shm_pair(plan::Rank from, plan::Rank to) {
  if (arenas_.empty()) return std::nullopt;
  auto offer = links::ShmOffer::make(*arenas_[from]).value();
  auto const described = offer.described();
  auto region = regions_.open(described.ticket);
  if (region.has_error()) return std::nullopt;
  auto loan = links::ShmLoan::take(std::move(*region), described.offset);
  if (loan.has_error()) return std::nullopt;
  auto [here, there] = socket_pair(io_);
  Pair pair{std::make_shared<links::ShmLink>(std::move(here), std::move(offer)),
            std::make_shared<links::ShmLink>(std::move(there), std::move(*loan))};
  shm_ends_.push_back({from, pair.dialer});
  shm_ends_.push_back({to, pair.acceptor});
  return pair;
}

std::shared_ptr<links::Link> LoopbackFleet::connect_stranger(plan::Rank to, Identity who) {
  if (auto const pair = shm_pair(static_cast<plan::Rank>(who.incarnation - 100), to)) {
    members_[to]->engine.adopt(pair->acceptor, std::move(who), lends_gpu_memory_);
    return pair->dialer;
  }
  auto [here, there] = network_.connect();
  members_[to]->engine.adopt(std::move(there), std::move(who), lends_gpu_memory_);
  return here;
}

}  // namespace chorus::engine::testing
