// The other end of a link in the hands of a test: sends any frame, remembers what came.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "worker/engine/data_plane.hpp"
#include "worker/links/link.hpp"

namespace chorus::engine::testing {

// Of a sender's only channel.
[[nodiscard]] std::uint64_t digest_of(RunSpec const& spec);
// What the sender, rank 1 of a fleet, says to rank 0.
[[nodiscard]] links::Open open_of(RunSpec const& spec, std::uint64_t eager_bytes);

class Puppet final : public links::LinkHandler {
 public:
  struct Frame {
    links::FrameHeader header;
    std::vector<std::byte> payload;
  };

  void hold(std::shared_ptr<links::Link> link);
  // header.length is sent as it is, whatever the payload has.
  void send(links::FrameHeader header, std::vector<std::byte> payload = {});
  // From where it lies, which stays.
  void refer(links::FrameHeader header, std::span<std::byte const> payload);
  void send_open(std::uint64_t run, std::uint32_t epoch, links::Open const& open, std::string const& description);
  void send_data(std::uint64_t run, std::uint32_t epoch, std::uint32_t message, std::uint64_t offset,
                 std::size_t bytes);

  [[nodiscard]] std::vector<Frame> const& received() const { return received_; }
  // The first frame of that type.
  [[nodiscard]] std::optional<Frame> find(links::FrameType type) const;
  // The failure notice of the first frame of that type.
  [[nodiscard]] std::optional<links::FailureNotice> failure_notice(links::FrameType type) const;
  [[nodiscard]] bool is_closed() const { return closed_; }

  bool next_frame(links::OutFrame& frame) override;
  void frame_sent(links::FrameHeader const&) override {}
  Status frame_arrives(links::FrameHeader const& header) override;
  void frame_is_corrupt(Error const&) override {}
  std::span<std::byte> payload_space() override;
  Status payload_arrived(std::size_t bytes) override;
  void payload_at(std::span<std::byte const> payload) override;
  void payload_withdrawn() override { received_.pop_back(); }
  void link_rests() override {}
  void link_closed(Error) override { closed_ = true; }

 private:
  std::shared_ptr<links::Link> link_;
  std::deque<Frame> sent_;  // kept: the link reads them where they are
  std::deque<links::OutFrame> to_send_;
  std::vector<Frame> received_;
  std::size_t filled_ = 0;
  bool closed_ = false;
};

}  // namespace chorus::engine::testing
