#include "tests/support/faults/fault_proxy.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <vector>

namespace chorus::testing {
namespace {

constexpr std::size_t piece_bytes = 65536;
constexpr std::size_t held_max = 1 << 20;  // per direction; more waits in the sockets
constexpr std::chrono::milliseconds delay{20};

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

void prepare(int socket) {
  int const on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::fcntl(socket, F_SETFL, O_NONBLOCK);
}

}  // namespace

std::string to_string(Harm harm) {
  constexpr std::array names{"none",           "delay",          "cut",
                             "deaf",           "mute",           "silent",
                             "truncate",       "corrupt_frame",  "corrupt_payload",
                             "corrupt_answer", "corrupt_message"};
  return names.at(static_cast<std::size_t>(harm));
}

FaultProxy::FaultProxy(std::uint64_t seed) : random_(seed) {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  auto address = loopback(0);
  socklen_t size = sizeof address;
  if (listener_ < 0 || ::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::listen(listener_, 256) != 0 || ::pipe2(bell_, O_CLOEXEC | O_NONBLOCK) != 0)
    throw std::runtime_error(std::string("no proxy: ") + std::strerror(errno));
  ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { serve(); });
}

FaultProxy::~FaultProxy() {
  stops_ = true;
  wake();
  thread_.join();
  for (auto& pair : pairs_) end(pair, false);
  for (int const descriptor : {listener_, bell_[0], bell_[1]}) ::close(descriptor);
}

void FaultProxy::wake() const {
  char const byte = 0;
  static_cast<void>(::write(bell_[1], &byte, 1));
}

void FaultProxy::suffer(Harm harm) {
  wanted_ = harm;
  wake();
}

void FaultProxy::end(Pair& pair, bool with_reset) {
  linger const at_once{1, 0};
  for (int const socket : {pair.outside, pair.inside}) {
    if (with_reset) ::setsockopt(socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    ::close(socket);
  }
  pair.is_over = true;
}

bool FaultProxy::is_kept_back(Way const& way) const {
  return harm_ == Harm::silent || (harm_ == Harm::deaf && way.is_inward) || (harm_ == Harm::mute && !way.is_inward);
}

void FaultProxy::serve() {
  while (!stops_) {
    if (auto const wanted = wanted_.load(); wanted != harm_) {
      harm_ = wanted;
      for (auto& pair : pairs_) pair.inward.was_harmed = pair.outward.was_harmed = false;
      if (harm_ == Harm::cut)
        for (auto& pair : pairs_) end(pair, true), ++harmed_;
    }
    std::erase_if(pairs_, [](Pair const& pair) { return pair.is_over; });
    std::vector<pollfd> waits{{listener_, POLLIN, 0}, {bell_[0], POLLIN, 0}};
    auto const now = Clock::now();
    int timeout_ms = 1000;
    for (auto& pair : pairs_)
      for (auto* way : {&pair.inward, &pair.outward}) {
        bool const reads = !way->has_ended && way->held.size() < held_max;
        bool const is_late = way->due > now;
        bool const writes = !way->held.empty() && !is_kept_back(*way) && !is_late;
        if (is_late && !way->held.empty()) timeout_ms = 2;
        waits.push_back({reads ? way->from : -1, POLLIN, 0});
        waits.push_back({writes ? way->to : -1, POLLOUT, 0});
      }
    ::poll(waits.data(), waits.size(), timeout_ms);
    for (char rings[64]; ::read(bell_[0], rings, sizeof rings) > 0;) {}
    if (wanted_ != harm_) continue;
    std::size_t at = 2;
    for (auto& pair : pairs_)
      for (auto* way : {&pair.inward, &pair.outward}) {
        if (!pair.is_over && waits[at].revents != 0) read(pair, *way);
        if (!pair.is_over && waits[at + 1].revents != 0) write(pair, *way);
        at += 2;
      }
    if (waits[0].revents != 0) accept_one();
  }
}

void FaultProxy::accept_one() {
  int const outside = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  if (outside < 0) return;
  Pair pair;
  pair.outside = outside;
  pair.inside = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  auto const address = loopback(target_);
  bool const is_cut = harm_ == Harm::cut;
  if (is_cut || ::connect(pair.inside, reinterpret_cast<sockaddr const*>(&address), sizeof address) != 0) {
    if (is_cut) ++harmed_;
    end(pair, true);
    return;
  }
  prepare(pair.outside);
  prepare(pair.inside);
  begin(pair.inward, pair.outside, pair.inside, true);
  begin(pair.outward, pair.inside, pair.outside, false);
  pairs_.push_back(std::move(pair));
}

void FaultProxy::begin(Way& way, int from, int to, bool is_inward) {
  way.from = from;
  way.to = to;
  way.is_inward = is_inward;
}

void FaultProxy::read(Pair& pair, Way& way) {
  std::string piece(piece_bytes, '\0');
  auto const got = ::read(way.from, piece.data(), piece.size());
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got < 0) return end(pair, true);
  if (got == 0) {
    way.has_ended = true;
    if (way.held.empty()) ::shutdown(way.to, SHUT_WR);
    if (pair.inward.has_ended && pair.outward.has_ended && pair.inward.held.empty() && pair.outward.held.empty())
      end(pair, false);
    return;
  }
  piece.resize(static_cast<std::size_t>(got));
  follow_link(pair, way, piece);
  strike(pair, way, piece);
  if (!pair.is_over) way.held += piece;
}

void FaultProxy::strike(Pair& pair, Way& way, std::string& piece) {
  if (is_kept_back(way)) ++harmed_;
  if (harm_ == Harm::delay) {
    ++harmed_;
    way.due = Clock::now() + delay;
  }
  if (harm_ == Harm::corrupt_message) strike_message(way, piece);
  if (harm_ == Harm::truncate && !way.was_harmed) {
    ++harmed_;
    piece.resize(random_() % piece.size());
    static_cast<void>(::write(way.to, piece.data(), piece.size()));
    end(pair, false);
  }
}

void FaultProxy::strike_message(Way& way, std::string& piece) {
  auto const at = piece.find("\r\nChorus-Message-Crc32c: ");
  if (way.is_link || way.was_harmed || at == std::string::npos) return;
  way.was_harmed = true;
  if (random_() % 2 == 0) return;
  // A bit of the header before the field or of the bytes after it, because the field has two spellings for one number.
  auto const after = std::min(piece.size(), at + 43);
  if (after < piece.size() && random_() % 2 == 0) return turn_a_bit(way, piece, after, piece.size() - after);
  turn_a_bit(way, piece, 0, at);
}

// A link begins with a request and its answer, each up to its blank line; then come frames.
void FaultProxy::follow_link(Pair& pair, Way& way, std::string& piece) {
  constexpr std::size_t head_max = 16384;
  if (way.is_link) return follow_frames(pair, way, piece, 0);
  if (way.head.size() > head_max || (!way.is_inward && !pair.inward.is_link)) return;
  auto const before = way.head.size();
  way.head += piece;
  auto const blank = way.head.find("\r\n\r\n");
  if (blank == std::string::npos || (way.is_inward && !way.head.starts_with("GET /v1/link "))) return;
  way.is_link = true;
  if (!way.is_inward && way.head.find("Chorus-Checksum: crc32c\r\n") < blank) pair.frame_head_bytes = 40;
  follow_frames(pair, way, piece, blank + 4 - before);
}

// The length of a payload is in bytes 20-23 of the frame header before it.
void FaultProxy::follow_frames(Pair& pair, Way& way, std::string& piece, std::size_t at) {
  bool const in_heads =
      (harm_ == Harm::corrupt_frame && way.is_inward) || (harm_ == Harm::corrupt_answer && !way.is_inward);
  bool const in_payloads = harm_ == Harm::corrupt_payload && way.is_inward;
  while (at < piece.size()) {
    if (way.to_payload_end > 0) {
      auto const passed = std::min(way.to_payload_end, piece.size() - at);
      if (in_payloads && !way.was_harmed) turn_a_bit(way, piece, at, passed);
      way.to_payload_end -= passed;
      at += passed;
      continue;
    }
    way.frame_head += piece[at];
    if (in_heads && !way.was_harmed && way.frame_head.size() > random_() % pair.frame_head_bytes)
      turn_a_bit(way, piece, at, 1);
    ++at;
    if (way.frame_head.size() < pair.frame_head_bytes) continue;
    std::uint32_t length = 0;
    std::memcpy(&length, way.frame_head.data() + 20, sizeof length);
    way.to_payload_end = length;
    way.frame_head.clear();
  }
}

void FaultProxy::turn_a_bit(Way& way, std::string& piece, std::size_t at, std::size_t bytes) {
  auto& byte = piece[at + random_() % bytes];
  byte = static_cast<char>(byte ^ (1 << random_() % 8));
  way.was_harmed = true;
  ++harmed_;
}

void FaultProxy::write(Pair& pair, Way& way) {
  auto const put = ::send(way.to, way.held.data(), way.held.size(), MSG_NOSIGNAL);
  if (put < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (put < 0) return end(pair, true);
  way.held.erase(0, static_cast<std::size_t>(put));
  if (way.held.empty() && way.has_ended) ::shutdown(way.to, SHUT_WR);
}

}  // namespace chorus::testing
