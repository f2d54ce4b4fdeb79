// A TCP proxy on loopback in front of one service, which disturbs connections as networks do.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <list>
#include <mutex>
#include <random>
#include <string>
#include <thread>

namespace chorus::testing {

enum class Harm : std::uint8_t {
  none,
  delay,     // every piece, by 20 ms
  cut,       // all connections, with a reset; new ones too, as soon as they are accepted
  deaf,      // data to the service is not passed on; no connection is closed
  mute,      // data from the service is not passed on; no connection is closed
  silent,    // data is passed on in neither direction; no connection is closed
  truncate,  // the next piece of every connection is passed on in part, and the connection is closed
  // The following change one bit, on every link:
  corrupt_frame,    // in the header of a frame to the service
  corrupt_payload,  // in the payload of a frame to the service
  corrupt_answer,   // in the header of a frame from the service
  // One bit of the next message with a checksum, in either direction, on every second connection that is not a link.
  corrupt_message,
};
std::string to_string(Harm harm);

// Forwards from construction on, on its own thread, which ends with the object. Thread-safe.
class FaultProxy {
 public:
  explicit FaultProxy(std::uint64_t seed);  // decides where to cut and which bit to change
  ~FaultProxy();
  FaultProxy(FaultProxy const&) = delete;
  FaultProxy& operator=(FaultProxy const&) = delete;

  [[nodiscard]] std::uint16_t port() const { return port_; }
  void forward_to(std::uint16_t port) { target_ = port; }
  // Applies the harm until the next call. `none` passes on what was kept back.
  void suffer(Harm harm);
  // Number of pieces that were delayed, cut, kept back or changed so far.
  [[nodiscard]] std::uint64_t harmed() const { return harmed_; }

 private:
  using Clock = std::chrono::steady_clock;

  // One direction of a connection: bytes that were read from `from` and not yet written to `to`.
  struct Way {
    int from = -1;
    int to = -1;
    bool is_inward = false;  // towards the service
    std::string held;
    Clock::time_point due;
    bool has_ended = false;
    bool was_harmed = false;  // by the present harm, if it strikes only once
    // Position of the passing bytes in the frames of a link.
    std::string head;
    bool is_link = false;
    std::size_t to_payload_end = 0;
    std::string frame_head;
  };
  struct Pair {
    int outside = -1;
    int inside = -1;
    Way inward, outward;
    std::size_t frame_head_bytes = 32;  // 40 on links with checksums
    bool is_over = false;
  };

  void serve();
  void accept_one();
  void begin(Way& way, int from, int to, bool is_inward);
  void read(Pair& pair, Way& way);
  void write(Pair& pair, Way& way);
  void strike(Pair& pair, Way& way, std::string& piece);
  void follow_link(Pair& pair, Way& way, std::string& piece);
  void follow_frames(Pair& pair, Way& way, std::string& piece, std::size_t at);
  void strike_message(Way& way, std::string& piece);
  void turn_a_bit(Way& way, std::string& piece, std::size_t at, std::size_t bytes);
  [[nodiscard]] bool is_kept_back(Way const& way) const;
  static void end(Pair& pair, bool with_reset);
  void wake() const;

  std::uint16_t port_ = 0;
  std::atomic<std::uint16_t> target_{0};
  std::atomic<std::uint64_t> harmed_{0};
  std::atomic<bool> stops_{false};
  std::atomic<Harm> wanted_{Harm::none};
  int listener_ = -1;
  int bell_[2] = {-1, -1};
  // Used by the thread only.
  Harm harm_ = Harm::none;
  std::mt19937_64 random_;
  std::list<Pair> pairs_;
  std::thread thread_;
};

}  // namespace chorus::testing
