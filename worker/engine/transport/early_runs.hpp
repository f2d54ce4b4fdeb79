// Runs that a peer has opened and this rank has not started: their opens, and the data that came with them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "worker/engine/channels/receive_channel.hpp"
#include "worker/engine/failure/retired.hpp"
#include "worker/engine/transport/connection.hpp"
#include "worker/engine/transport/refusals.hpp"

namespace chorus::engine {

struct EarlyRun {
  std::uint64_t run = 0;
  std::uint32_t epoch = 0;
  links::Open open;
  std::string description;
  std::optional<links::Lend> lend;
  std::optional<links::Envelope> envelope;
  std::vector<std::byte> frames;      // repeated: header, payload, padding to 16 bytes
  ReceiveChannel* channel = nullptr;  // set if the run starts while a frame for it is arriving
};

// Those of one receive connection. Data thread only.
class EarlyRuns {
 public:
  // All outlive this object.
  EarlyRuns(ConnectionOwner& owner, Connection& connection, Refusals& refusals);
  EarlyRuns(EarlyRuns const&) = delete;
  EarlyRuns& operator=(EarlyRuns const&) = delete;

  // Null: no such run waits here. Valid until the run is forgotten.
  [[nodiscard]] EarlyRun* find(std::uint64_t run) const;
  void forget(std::uint64_t run);
  // Refuses the runs of the epoch.
  void retire(Retired const& epoch);
  [[nodiscard]] std::vector<std::unique_ptr<EarlyRun>> remove_all();
  // Tells the owner that these, if they are messages, are lost with the link.
  void report_lost(std::vector<std::unique_ptr<EarlyRun>> const& removed, Error const& why);

  // Keeps the open of a run, which is the current control frame. Refuses the run if too many wait.
  void keep(links::FrameHeader const& header, links::DecodedOpen const& open);
  // Runs of the epoch's messages, in the order in which they came.
  [[nodiscard]] std::vector<std::uint64_t> messages(std::uint64_t token, std::uint32_t epoch) const;
  // Tells the owner of a message; no effect if none of this run waits here.
  void report_message(std::uint64_t run);
  // Refuses a message; no effect if none of this run waits here.
  void refuse_message(std::uint64_t run, Failure const& why);

  // A data frame of the run begins to arrive. It is stored, unless too much is: then the run is refused. Errors:
  // LinkErrc::bad_frame.
  [[nodiscard]] Status begin_frame(EarlyRun& early, links::FrameHeader const& header);
  // True while a frame arrives that is stored.
  [[nodiscard]] bool is_arriving() const { return arriving_ != nullptr; }
  // Memory for the last `left` bytes of its payload.
  [[nodiscard]] std::span<std::byte> space(std::size_t left);
  // Errors: see deliver().
  [[nodiscard]] Status frame_ended();
  void frame_withdrawn();

  // The run starts: gives the channel its data, also that of a frame that is arriving, and forgets the run. Errors:
  // LinkErrc::bad_frame.
  [[nodiscard]] Status deliver(EarlyRun& early, ReceiveChannel& channel);

 private:
  // Bytes stored, and their limit.
  [[nodiscard]] std::uint64_t data() const;
  [[nodiscard]] std::uint64_t data_max() const;
  void refuse(std::uint64_t run, std::uint32_t epoch, std::uint64_t token, bool is_message, std::string why);
  [[nodiscard]] Status deliver_frame(ReceiveChannel& channel, std::span<std::byte const> frame);

  ConnectionOwner& owner_;
  Connection& connection_;
  Refusals& refusals_;
  std::vector<std::unique_ptr<EarlyRun>> runs_;
  EarlyRun* arriving_ = nullptr;
  std::size_t arriving_at_ = 0;  // where the frame begins in EarlyRun::frames
  // A run may start while half a frame of another run is in the connection's own.
  struct alignas(64) Memory : std::array<std::byte, scratch_bytes> {};
  std::unique_ptr<Memory> scratch_;
};

}  // namespace chorus::engine
