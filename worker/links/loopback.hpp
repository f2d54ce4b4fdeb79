// Links in memory, for tests: the bytes are cut anywhere, delayed and interleaved between links as a seed decides, but
// on each link they stay in order, as they do over TCP.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "worker/links/frame_stream.hpp"
#include "worker/links/link.hpp"

namespace chorus::links {

struct LoopbackOptions {
  std::uint64_t seed = 1;
  std::size_t pipe_bytes = 65536;  // as a socket buffer: what one direction holds
  // The most that moves at a time: all of it does, a random share, or a few bytes only.
  std::size_t chunk_bytes = 65536;
  Framing framing = Framing::plain;
};

// Single-threaded. The network outlives its links' use.
class LoopbackNetwork {
 public:
  explicit LoopbackNetwork(LoopbackOptions options);
  ~LoopbackNetwork();
  LoopbackNetwork(LoopbackNetwork const&) = delete;
  LoopbackNetwork& operator=(LoopbackNetwork const&) = delete;

  // Both ends of a new connection.
  [[nodiscard]] std::pair<std::shared_ptr<Link>, std::shared_ptr<Link>> connect();

  // Moves some bytes into or out of one pipe; false when nothing can move.
  bool step();

  // The n-th movement from now, n >= 1, does not happen: its connection breaks instead, wherever in a frame that is.
  // What was on the way may still arrive, or not.
  void cut_at_step(std::uint64_t n) { steps_to_cut_ = n; }
  [[nodiscard]] bool has_cut() const { return has_cut_; }
  // Breaks the connection now. Either of its ends.
  void cut(Link& end);

  // One bit of the n-th bytes to be read from now, n >= 1, is another one then.
  void corrupt_at_read(std::uint64_t n) { reads_to_corruption_ = n; }
  [[nodiscard]] bool has_corrupted() const { return has_corrupted_; }

  // Its process is stopped: this end reads and writes nothing, until it goes on.
  void stop(Link& end);
  void go_on(Link& end);

 private:
  class End;
  struct Pipe;

  [[nodiscard]] bool cut_now();
  void pass(std::span<std::byte> bytes);
  std::uint64_t below(std::uint64_t limit) { return random_() % limit; }
  [[nodiscard]] std::size_t some_of(std::size_t bytes);

  LoopbackOptions const options_;
  std::mt19937_64 random_;
  std::vector<std::shared_ptr<End>> ends_;  // open ones
  std::uint64_t steps_to_cut_ = 0;          // 0: never
  bool has_cut_ = false;
  std::uint64_t reads_to_corruption_ = 0;  // 0: never
  bool has_corrupted_ = false;
};

}  // namespace chorus::links
