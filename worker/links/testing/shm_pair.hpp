// Both ends of a link through shared memory in one process, with recording handlers.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "worker/links/shm/shm_link.hpp"
#include "worker/memory/regions/region_registry.hpp"

namespace chorus::links::testing {

using Bytes = std::vector<std::byte>;

inline Bytes bytes_of(std::size_t size, std::uint64_t seed) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 31 + i / 251 + seed);
  return bytes;
}

inline FrameHeader header_of(std::uint64_t run, std::size_t length, FrameType type = FrameType::data) {
  FrameHeader header;
  header.type = type;
  header.run = run;
  header.length = static_cast<std::uint32_t>(length);
  return header;
}

// Sends given frames, records what arrives, and calls the test's functions while it reads.
class ShmEnd final : public LinkHandler {
 public:
  struct Frame {
    FrameHeader header;
    std::span<std::byte const> payload;
  };
  std::deque<Frame> to_send;
  std::vector<std::uint64_t> sent;  // runs of the frames for which frame_sent() was called
  Bytes arrived;
  std::vector<FrameHeader> headers;
  int withdrawn = 0;
  std::function<void()> before_sending = [] {};
  std::function<void()> before_reading = [] {};
  std::function<void()> while_reading = [] {};
  std::optional<Error> closed;

  bool next_frame(OutFrame& frame) override {
    if (to_send.empty()) return false;
    before_sending();
    frame = {to_send.front().header, to_send.front().payload};
    to_send.pop_front();
    return true;
  }
  void frame_sent(FrameHeader const& header) override { sent.push_back(header.run); }
  Status frame_arrives(FrameHeader const& header) override {
    headers.push_back(header);
    return check(header);
  }
  void frame_is_corrupt(Error const&) override { FAIL("shared memory has no checksums"); }
  std::span<std::byte> payload_space() override {
    FAIL("payloads lie in memory");
    return {};
  }
  void payload_at(std::span<std::byte const> payload) override {
    before_reading();
    read_.assign(payload.begin(), payload.end());
    while_reading();
  }
  Status payload_arrived(std::size_t bytes) override {
    CHECK(bytes == read_.size());
    arrived.insert(arrived.end(), read_.begin(), read_.end());
    return ok();
  }
  void payload_withdrawn() override { ++withdrawn; }
  void link_rests() override {}
  void link_closed(Error why) override { closed = std::move(why); }

 private:
  Bytes read_;
};

class ShmPair {
 public:
  ShmPair() : arena(memory::SharedRegion::create(memory::random_ticket(16u << 20)).value()) {
    boost::asio::ip::tcp::acceptor acceptor(io,
                                            boost::asio::ip::tcp::endpoint(boost::asio::ip::address_v4::loopback(), 0));
    boost::asio::ip::tcp::socket here(io);
    here.connect(acceptor.local_endpoint());
    auto there = acceptor.accept();
    auto offer = ShmOffer::make(arena).value();
    auto const described = offer.described();
    control = reinterpret_cast<ShmControl*>(offer.control.bytes().data());
    dialer = std::make_shared<ShmLink>(std::move(here), std::move(offer));
    acceptor_ = std::make_shared<ShmLink>(
        std::move(there), ShmLoan::take(regions.open(described.ticket).value(), described.offset).value());
    dialer->start(a);
    acceptor_->start(b);
  }
  ~ShmPair() {
    dialer->let_go();
    acceptor_->let_go();
  }

  void send(FrameHeader header, std::span<std::byte const> payload) {
    a.to_send.push_back({header, payload});
    dialer->flush();
  }
  [[nodiscard]] std::span<std::byte> in_arena(Bytes const& bytes) {
    auto const block = arena.allocate(bytes.size()).value();
    std::copy(bytes.begin(), bytes.end(), block.begin());
    return block;
  }
  void move() {
    while (dialer->poll() || acceptor_->poll() || io.poll() != 0) {}
  }
  // Writes to the ring directly, like a dialer that breaks the rules.
  RingSender& forge() { return forged.emplace(control->forward, control->forward_ring); }

  boost::asio::io_context io{1};
  memory::Arena arena;
  memory::RegionRegistry regions;
  ShmEnd a, b;
  ShmControl* control = nullptr;
  std::shared_ptr<ShmLink> dialer, acceptor_;
  std::optional<RingSender> forged;
};

}  // namespace chorus::links::testing
