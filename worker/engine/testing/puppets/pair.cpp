#include "worker/engine/testing/puppets/pair.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "collectives/algorithms/catalogue.hpp"
#include "worker/engine/testing/puppets/puppet.hpp"
#include "worker/links/frames/errc.hpp"

namespace chorus::engine::testing {
namespace {

using links::FrameType;

constexpr std::chrono::seconds allowed{8};

DataPlaneOptions options(plan::Rank rank) {
  DataPlaneOptions options;
  options.worker = "w" + std::to_string(rank);
  options.incarnation = 100 + rank;
  return options;
}

Bytes copy_of(std::span<std::byte const> bytes) { return {bytes.begin(), bytes.end()}; }

}  // namespace

void Wire::flush() {
  for (links::OutFrame frame; handler != nullptr && handler->next_frame(frame);) {
    frames.push_back({frame.header, copy_of(frame.payload)});
    handler->frame_sent(frame.header);
  }
}

links::Taken Wire::send_coalesced_frame(links::CoalescedFrame const& coalesced_frame) {
  if (takes == links::Taken::nothing) return takes;
  if (on_coalesced_frame) on_coalesced_frame();
  coalesced_frames.push_back({Frame{coalesced_frame.open, copy_of(coalesced_frame.opening)},
                              Frame{coalesced_frame.data, copy_of(coalesced_frame.payload)}});
  return takes;
}

void Wire::close() {
  flush();
  handler = nullptr;
}

void Wire::bring(links::FrameHeader const& header, Bytes const& payload) {
  REQUIRE(handler->frame_arrives(header).has_value());
  if (payload.empty()) return;
  std::memcpy(handler->payload_space().data(), payload.data(), payload.size());
  REQUIRE(handler->payload_arrived(payload.size()).has_value());
}

bool Wire::bring(links::CoalescedFrame const& coalesced_frame) {
  bool const was_taken = takes_in(coalesced_frame);
  if (!was_taken) {
    bring(coalesced_frame.open, copy_of(coalesced_frame.opening));
    bring(coalesced_frame.data, copy_of(coalesced_frame.payload));
  }
  return was_taken;
}

bool Wire::takes_in(links::CoalescedFrame const& coalesced_frame) {
  return handler->awaits_coalesced_frame(coalesced_frame.open) && handler->coalesced_frame_arrives(coalesced_frame);
}

void Wire::break_off() {
  std::exchange(handler, nullptr)->link_closed(Error(links::LinkErrc::closed, "closed by the peer"));
}

std::size_t Wire::count(FrameType type) const {
  return static_cast<std::size_t>(
      std::count_if(frames.begin(), frames.end(), [type](auto const& frame) { return frame.header.type == type; }));
}

Pair::Pair(Form form) : engine(options(form.real), *this, book), form_(form) {
  Case c;
  c.algorithm = form.algorithm != nullptr ? form.algorithm : &algorithms::mesh;
  c.elements = form.elements;
  c.segment_bytes = form.segment_bytes;
  c.in_place = form.in_place;
  c.timeout = allowed;
  collective_.emplace(models_, c, now_);
  kind_ = std::make_shared<RunKind>(spec());
  for (std::uint64_t i = 1; i <= form.elements; ++i) {
    input_.push_back(static_cast<float>(i));
    theirs_.push_back(static_cast<float>(10 * i));
    sums_.push_back(static_cast<float>(11 * i));
  }
  output_.resize(form.elements);
  engine.adopt(in, {"w" + std::to_string(other()), 100 + other()});
}

void Pair::call(std::uint64_t run, std::shared_ptr<RunKind> kind, std::span<float> output) {
  results_.emplace_back();
  auto* const result = &results_.back();
  auto const input = form_.in_place ? output : std::span<float>(input_);
  if (form_.in_place) std::copy(input_.begin(), input_.end(), output.begin());
  engine.start(std::move(kind), {run, std::as_bytes(input), std::as_writable_bytes(output), now_ + allowed},
               [result](RunResult ended) { *result = std::move(ended); });
  if (auto const send_connection = std::exchange(dialed_, 0); send_connection != 0)
    engine.dialed(send_connection, std::shared_ptr<links::Link>(out));
}

void Pair::call_first() {
  call(1);
  CHECK_FALSE(bring(1));
  CHECK(out->coalesced_frames.empty());
  CHECK(sum_is_right());
  out->frames.clear();
}

links::CoalescedFrame Pair::coalesced_frame(std::uint64_t run) {
  auto const& peers = collective_->spec(other());
  links::Open const peers_open{
      peers.token, peers.fingerprint, digest_of(peers), 100 + form_.real, DataPlaneOptions().eager_bytes,
      other(),     form_.real};
  links::CoalescedFrame coalesced_frame;
  coalesced_frame.open.type = FrameType::open;
  coalesced_frame.open.run = coalesced_frame.data.run = run;
  coalesced_frame.open.epoch = coalesced_frame.data.epoch = 1;
  coalesced_frame.open.length = links::encode(peers_open, spec().description, opening);
  coalesced_frame.opening = std::span(opening).first(coalesced_frame.open.length);
  coalesced_frame.payload = std::as_bytes(std::span(theirs_));
  coalesced_frame.data.length = static_cast<std::uint32_t>(coalesced_frame.payload.size());
  return coalesced_frame;
}

bool Pair::bring(std::uint64_t run) {
  auto const whole = coalesced_frame(run);
  auto const segment = form_.segment_bytes;
  bool was_taken = false;
  if (whole.data.length <= segment) {
    was_taken = in->bring(whole);
  } else {
    in->bring(whole.open, copy_of(whole.opening));
    for (std::uint64_t at = 0; at < whole.data.length; at += segment) {
      auto header = whole.data;
      header.offset = at;
      header.length = static_cast<std::uint32_t>(std::min(segment, whole.data.length - at));
      in->bring(header, copy_of(whole.payload.subspan(at, header.length)));
    }
  }
  in->rest();
  return was_taken;
}

void Pair::pass(std::chrono::milliseconds time) {
  pass_unnoticed(time);
  engine.check_deadlines();
}

bool Pair::sum_is_right() {
  bool const is_right = has_ended() && result().status.has_value() && output_ == sums_;
  std::fill(output_.begin(), output_.end(), 0.F);
  return is_right;
}

std::string Pair::failure() const {
  return has_ended() && result().status.has_error() ? result().status.error().detail : "it has not failed";
}

}  // namespace chorus::engine::testing
