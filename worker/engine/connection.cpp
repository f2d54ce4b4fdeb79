#include "worker/engine/connection.hpp"

#include <utility>

#include "worker/engine/engine.hpp"

namespace chorus::engine {

Connection::Connection(Engine& engine, Identity peer)
    : engine_(engine), counters_(engine.traffic_.of(peer.worker)), peer_(std::move(peer)) {}

void Connection::attach(std::shared_ptr<links::Link> link) {
  link_ = std::move(link);
  counters_.connected(is_shm());
  link_->start(*this);
  touch();
}

void Connection::send_verdict(links::FrameType type, std::uint64_t run, std::uint32_t epoch,
                              links::Verdict const& verdict) {
  auto& queued = verdicts_.emplace_back();
  queued.header.type = type;
  queued.header.run = run;
  queued.header.epoch = epoch;
  queued.header.length = links::encode(verdict, queued.bytes);
  touch();
}

bool Connection::next_verdict(links::OutFrame& frame) {
  if (given_ == verdicts_.size()) return false;
  auto const& queued = verdicts_[given_++];
  frame.header = queued.header;
  frame.payload = std::span(queued.bytes).first(queued.header.length);
  return true;
}

void Connection::verdict_sent() {
  verdicts_.pop_front();
  --given_;
}

void Connection::touch() {
  if (!closed_) engine_.dirty_connections_.push(*this);
}

void Connection::flush() {
  if (link_ && !closed_) link_->flush();
}

void Connection::fail(Error why) {
  if (closing_ || closed_) return;
  closing_ = true;
  if (link_) link_->close();
  link_closed(std::move(why));
}

void Connection::link_rests() { engine_.settle(); }

void Connection::link_closed(Error why) {
  if (closed_) return;
  closed_ = true;
  if (link_) counters_.disconnected(is_shm());
  lost(why);
  engine_.settle();
}

void Connection::collect(links::FrameHeader const& header) {
  control_header_ = header;
  control_filled_ = 0;
}

std::span<std::byte> Connection::collecting_space() {
  return std::span(control_).first(control_header_.length).subspan(control_filled_);
}

bool Connection::collected(std::size_t bytes) {
  control_filled_ += bytes;
  return control_filled_ == control_header_.length;
}

std::span<std::byte const> Connection::control_payload() const { return std::span(control_).first(control_filled_); }

}  // namespace chorus::engine
