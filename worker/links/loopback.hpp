// Links in memory, for tests. A seed decides where the bytes are cut, delayed and interleaved between links. On each
// link they stay in order, as over TCP.
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
  std::size_t pipe_bytes = 65536;  // what one direction holds, like a socket buffer
  // The most that moves at a time: either all of it, a random part, or a few bytes.
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

  // Returns both ends of a new connection.
  [[nodiscard]] std::pair<std::shared_ptr<Link>, std::shared_ptr<Link>> connect();

  // Moves some bytes into or out of one pipe; false when nothing can move.
  bool step();

  // Breaks a connection instead of the n-th movement from now, n >= 1, wherever in a frame that is. Bytes on the way
  // may still arrive, or not.
  void cut_at_step(std::uint64_t n) { steps_to_cut_ = n; }
  [[nodiscard]] bool has_cut() const { return has_cut_; }
  // Breaks the connection of this end now.
  void cut(Link& end);

  // Flips one bit in the n-th read from now, n >= 1.
  void corrupt_at_read(std::uint64_t n) { reads_to_corruption_ = n; }
  [[nodiscard]] bool has_corrupted() const { return has_corrupted_; }

  // Simulates a stopped process: this end reads and writes nothing until go_on().
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
