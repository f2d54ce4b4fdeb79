// One end of a link in the hands of a test: sends any frame, keeps what arrives.
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

// Returns the digest of the only channel on which this rank sends.
[[nodiscard]] std::uint64_t digest_of(RunSpec const& spec);
// Returns the open that rank 1 of a fleet sends to rank 0.
[[nodiscard]] links::Open open_of(RunSpec const& spec, std::uint64_t eager_bytes);

class Puppet final : public links::LinkHandler {
 public:
  struct Frame {
    links::FrameHeader header;
    std::vector<std::byte> payload;
  };

  void hold(std::shared_ptr<links::Link> link);
  // Sends header.length unchanged, even if the payload has another length.
  void send(links::FrameHeader header, std::vector<std::byte> payload = {});
  // Sends the payload from its place in the test's memory, which outlives the link.
  void refer(links::FrameHeader header, std::span<std::byte const> payload);
  void send_open(std::uint64_t run, std::uint32_t epoch, links::Open const& open, std::string const& description);
  void send_data(std::uint64_t run, std::uint32_t epoch, std::uint32_t message, std::uint64_t offset,
                 std::size_t bytes);

  [[nodiscard]] std::vector<Frame> const& received() const { return received_; }
  // Returns the first frame of this type.
  [[nodiscard]] std::optional<Frame> find(links::FrameType type) const;
  // Returns the failure notice in the first frame of this type.
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
  std::deque<Frame> sent_;  // kept, because the link reads the payloads in place
  std::deque<links::OutFrame> to_send_;
  std::vector<Frame> received_;
  std::size_t filled_ = 0;
  bool closed_ = false;
};

}  // namespace chorus::engine::testing
