#include "worker/links/loopback.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "worker/links/frames/errc.hpp"

namespace chorus::links {

// One direction of a connection: a ring of bytes.
struct LoopbackNetwork::Pipe {
  explicit Pipe(std::size_t bytes) : ring(bytes) {}

  [[nodiscard]] std::size_t free() const { return ring.size() - held; }

  void put(std::span<std::byte const> bytes) {
    auto const end = (begin + held) % ring.size();
    auto const first = std::min(bytes.size(), ring.size() - end);
    std::memcpy(ring.data() + end, bytes.data(), first);
    std::memcpy(ring.data(), bytes.data() + first, bytes.size() - first);
    held += bytes.size();
  }

  void take(std::span<std::byte> to) {
    auto const first = std::min(to.size(), ring.size() - begin);
    std::memcpy(to.data(), ring.data() + begin, first);
    std::memcpy(to.data() + first, ring.data(), to.size() - first);
    begin = (begin + to.size()) % ring.size();
    held -= to.size();
  }

  std::vector<std::byte> ring;
  std::size_t begin = 0, held = 0;
  bool ended = false;  // no more bytes are accepted
};

class LoopbackNetwork::End final : public Link, public std::enable_shared_from_this<End> {
 public:
  End(LoopbackNetwork& network, std::shared_ptr<Pipe> in, std::shared_ptr<Pipe> out)
      : network_(network),
        in_(std::move(in)),
        out_(std::move(out)),
        reader_(network.options_.framing),
        writer_(network.options_.framing) {}

  void start(LinkHandler& handler) override { handler_ = &handler; }
  void flush() override { wants_to_write_ = true; }
  Taken send_coalesced_frame(CoalescedFrame const& coalesced_frame) override {
    if (!is_free()) return Taken::nothing;
    std::array<std::byte, coalesced_frame_size_max> together;
    auto const size = writer_.lay(coalesced_frame, together);
    auto const sent = network_.some_of(std::min(size, out_->free()));
    out_->put(std::span(together).first(sent));
    if (sent == size) return Taken::whole;
    writer_.hold(coalesced_frame, sent);
    wants_to_write_ = true;
    return Taken::in_part;
  }
  bool send_message(MessageFrame const& message) override {
    if (!is_free()) return false;
    std::array<std::byte, message_frame_size_max> together;
    auto const size = writer_.lay(message, together);
    auto const sent = network_.some_of(std::min(size, out_->free()));
    out_->put(std::span(together).first(sent));
    if (sent == size) return true;
    writer_.hold(std::span(together).first(size).subspan(sent));
    wants_to_write_ = true;
    return true;
  }
  void release(std::uint64_t run) override { writer_.release(run); }
  void close() override {
    if (closed_) return;
    if (handler_ != nullptr && !out_->ended) last_words();
    closed_ = true;
    handler_ = nullptr;
    in_->ended = out_->ended = true;
    in_->held = 0;
  }
  [[nodiscard]] std::string_view kind() const override { return "loopback"; }

  [[nodiscard]] bool is_closed() const { return closed_; }

  [[nodiscard]] bool is_free() const {
    return handler_ != nullptr && !closed_ && !stopped_ && writer_.empty() && !out_->ended && out_->free() != 0;
  }
  bool cut() {
    in_->ended = out_->ended = true;
    if (network_.below(2) == 0) in_->held = 0;
    if (network_.below(2) == 0) out_->held = 0;
    return true;
  }

  void stop(bool stopped) { stopped_ = stopped; }

  // Tries to move bytes in one direction, then in the other. Calls handlers.
  bool step(bool write_first) {
    if (handler_ == nullptr || stopped_) return false;
    auto const alive = shared_from_this();
    return write_first ? write() || read() : read() || write();
  }

 private:
  bool write() {
    if (closed_ || !wants_to_write_ || out_->ended || out_->free() == 0) return false;
    writer_.fill(*handler_);
    if (closed_) return true;
    if (writer_.empty()) {
      wants_to_write_ = false;
      return false;
    }
    if (network_.cut_now()) return cut();
    auto budget = network_.some_of(out_->free());
    std::size_t wrote = 0;
    for (auto const& bytes : writer_.gather()) {
      if (budget == 0) break;
      auto const part = bytes.first(std::min<std::size_t>(bytes.size(), budget));
      out_->put(part);
      wrote += part.size();
      budget -= part.size();
    }
    writer_.wrote(*handler_, wrote);
    if (!closed_) handler_->link_rests();
    return true;
  }

  bool read() {
    if (closed_) return false;
    if (in_->held == 0) {
      if (in_->ended)
        fail(Error(LinkErrc::closed, reader_.within_frame() ? "cut in the middle of a frame" : "closed by the peer"));
      return in_->ended;
    }
    if (network_.cut_now()) return cut();
    auto left = network_.some_of(in_->held);
    std::size_t bytes = 0;
    for (auto const& space : reader_.space(*handler_)) {
      if (space.empty()) continue;
      auto const part = space.first(std::min<std::size_t>(space.size(), left));
      in_->take(part);
      network_.pass(part);
      bytes += part.size();
      left -= part.size();
    }
    if (auto const arrived = reader_.arrived(*handler_, bytes, closed_); arrived.has_error())
      fail(arrived.error());
    else if (!closed_)
      handler_->link_rests();
    return true;
  }

  void fail(Error why) {
    auto* const handler = handler_;
    close();
    handler->link_closed(std::move(why));
  }

  void last_words() {
    writer_.fill(*handler_);
    for (auto const& bytes : writer_.gather()) out_->put(bytes.first(std::min(bytes.size(), out_->free())));
  }

  LoopbackNetwork& network_;
  std::shared_ptr<Pipe> in_, out_;
  LinkHandler* handler_ = nullptr;
  bool closed_ = false;
  bool wants_to_write_ = false;
  bool stopped_ = false;
  FrameReader reader_;
  FrameWriter writer_;
};

LoopbackNetwork::LoopbackNetwork(LoopbackOptions options) : options_(options), random_(options.seed) {}
LoopbackNetwork::~LoopbackNetwork() = default;

std::pair<std::shared_ptr<Link>, std::shared_ptr<Link>> LoopbackNetwork::connect() {
  auto const there = std::make_shared<Pipe>(options_.pipe_bytes);
  auto const back = std::make_shared<Pipe>(options_.pipe_bytes);
  auto a = std::make_shared<End>(*this, back, there);
  auto b = std::make_shared<End>(*this, there, back);
  ends_.insert(ends_.end(), {a, b});
  return {a, b};
}

bool LoopbackNetwork::step() {
  std::erase_if(ends_, [](auto const& end) { return end->is_closed(); });
  auto const from = ends_.empty() ? 0 : below(ends_.size());
  bool const write_first = below(2) == 0;
  auto const count = ends_.size();
  for (std::size_t i = 0; i < count; ++i)
    if (ends_[(from + i) % count]->step(write_first)) return true;
  return false;
}

void LoopbackNetwork::cut(Link& end) { static_cast<End&>(end).cut(); }

void LoopbackNetwork::stop(Link& end) { static_cast<End&>(end).stop(true); }
void LoopbackNetwork::go_on(Link& end) { static_cast<End&>(end).stop(false); }

std::size_t LoopbackNetwork::some_of(std::size_t bytes) {
  constexpr std::size_t few = 64;
  auto const most = std::min(bytes, options_.chunk_bytes);
  auto const luck = below(3);
  return luck == 0 ? most : 1 + below(luck == 1 ? std::min(most, few) : most);
}

void LoopbackNetwork::pass(std::span<std::byte> bytes) {
  if (bytes.empty() || reads_to_corruption_ == 0 || --reads_to_corruption_ != 0) return;
  has_corrupted_ = true;
  bytes[below(bytes.size())] ^= std::byte{1} << below(8);
}

bool LoopbackNetwork::cut_now() {
  if (steps_to_cut_ == 0 || --steps_to_cut_ != 0) return false;
  return has_cut_ = true;
}

}  // namespace chorus::links
