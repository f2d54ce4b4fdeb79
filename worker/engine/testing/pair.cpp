#include "worker/engine/testing/pair.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "collectives/algorithms/catalogue.hpp"
#include "worker/engine/testing/puppet.hpp"
#include "worker/links/errc.hpp"

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

links::Taken Wire::send_parcel(links::Parcel const& parcel) {
  if (takes == links::Taken::nothing) return takes;
  if (on_parcel) on_parcel();
  parcels.push_back({Frame{parcel.open, copy_of(parcel.opening)}, Frame{parcel.data, copy_of(parcel.payload)}});
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

bool Wire::bring(links::Parcel const& parcel) {
  bool const was_taken = takes_in(parcel);
  if (!was_taken) {
    bring(parcel.open, copy_of(parcel.opening));
    bring(parcel.data, copy_of(parcel.payload));
  }
  return was_taken;
}

bool Wire::takes_in(links::Parcel const& parcel) {
  return handler->awaits_parcel(parcel.open) && handler->parcel_arrives(parcel);
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
  if (auto const outlet = std::exchange(dialed_, 0); outlet != 0)
    engine.dialed(outlet, std::shared_ptr<links::Link>(out));
}

void Pair::call_first() {
  call(1);
  CHECK_FALSE(bring(1));
  CHECK(out->parcels.empty());
  CHECK(sum_is_right());
  out->frames.clear();
}

links::Parcel Pair::parcel(std::uint64_t run) {
  auto const& peers = collective_->spec(other());
  links::Open const peers_open{
      peers.token, peers.fingerprint, digest_of(peers), 100 + form_.real, DataPlaneOptions().eager_bytes,
      other(),     form_.real};
  links::Parcel parcel;
  parcel.open.type = FrameType::open;
  parcel.open.run = parcel.data.run = run;
  parcel.open.epoch = parcel.data.epoch = 1;
  parcel.open.length = links::encode(peers_open, spec().description, opening);
  parcel.opening = std::span(opening).first(parcel.open.length);
  parcel.payload = std::as_bytes(std::span(theirs_));
  parcel.data.length = static_cast<std::uint32_t>(parcel.payload.size());
  return parcel;
}

bool Pair::bring(std::uint64_t run) {
  auto const whole = parcel(run);
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
