#include "worker/engine/data_plane.hpp"

#include <utility>

#include "worker/engine/data_plane_impl.hpp"

namespace chorus::engine {

DataPlane::DataPlane(DataPlaneOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}

DataPlane::~DataPlane() { impl_->stop(); }

void DataPlane::start(RunSpec spec, RunDone done) { impl_->start(std::move(spec), std::move(done)); }

RunResult DataPlane::run(std::shared_ptr<RunKind> const& kind, RunCall const& call, Interruption const* interruption) {
  return impl_->run(kind, call, interruption);
}

std::optional<std::uint64_t> DataPlane::run_at_once(MessageGroup& group, MessageRequest const& request) {
  return impl_->run_at_once(group, request);
}

void DataPlane::run_messages(std::shared_ptr<MessageGroup> const& group, std::span<MessageRequest> requests,
                             std::chrono::milliseconds timeout, std::span<MessageResult> results) {
  impl_->run_messages(group, requests, timeout, results);
}

void DataPlane::begin_message(std::shared_ptr<MessageGroup> group, MessageRequest const& request, MessageDone done) {
  impl_->begin_message(std::move(group), request, std::move(done));
}

void DataPlane::close_messages(std::shared_ptr<MessageGroup> group, Error why) {
  impl_->close_messages(std::move(group), std::move(why));
}

void DataPlane::give_up(RunSpec const& spec, plan::Rank rank, Error const& why) { impl_->give_up(spec, rank, why); }

void DataPlane::abort(std::uint64_t run, Error why) { impl_->abort(run, std::move(why)); }

http::Response DataPlane::welcome(links::Introduction const& peer) { return impl_->welcome(peer); }

void DataPlane::fence(std::string const& worker, std::uint64_t incarnation) { impl_->fence(worker, incarnation); }

void DataPlane::retire(Retired epoch) { impl_->retire(std::move(epoch)); }

std::vector<PeerTraffic> DataPlane::traffic() const { return impl_->traffic(); }

FlightRecorder* DataPlane::flights() const { return impl_->flights(); }

void DataPlane::ask_progress(std::optional<std::uint64_t> run, std::function<void(std::vector<RunProgress>)> answer) {
  impl_->ask_progress(run, std::move(answer));
}

}  // namespace chorus::engine
