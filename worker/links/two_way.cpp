#include "worker/links/two_way.hpp"

#include <array>
#include <utility>

#include "worker/links/frames/errc.hpp"

namespace chorus::links {
namespace {

class Whole final : public LinkHandler, public std::enable_shared_from_this<Whole> {
 public:
  explicit Whole(std::shared_ptr<Link> link)
      : link_(std::move(link)), parts_{Part(*this, 0, false), Part(*this, back_flag, true)} {}

  [[nodiscard]] TwoWay parts() {
    auto const self = shared_from_this();
    return {std::shared_ptr<Link>(self, &parts_[0]), std::shared_ptr<Link>(self, &parts_[1])};
  }

  bool next_frame(OutFrame& frame) override {
    for (int turn = 0; turn < 2; ++turn) {
      auto& part = parts_[turn_ ? 1 : 0];
      turn_ = !turn_;
      if (part.handler == nullptr || !part.handler->next_frame(frame)) continue;
      frame.header.flags |= part.flag;
      return true;
    }
    return false;
  }
  void frame_sent(FrameHeader const& header) override {
    auto& part = part_of(header);
    part.has_moved = true;
    if (part.handler != nullptr) part.handler->frame_sent(plain(header));
  }

  Status frame_arrives(FrameHeader const& header) override {
    arriving_ = &part_of(header);
    arriving_->has_moved = true;
    return arriving_->handler->frame_arrives(plain(header));
  }
  [[nodiscard]] bool awaits_coalesced_frame(FrameHeader const& open) const override {
    auto const* const handler = parts_[index_of(open)].handler;
    return handler != nullptr && handler->awaits_coalesced_frame(plain(open));
  }
  bool coalesced_frame_arrives(CoalescedFrame const& coalesced_frame) override {
    auto& part = part_of(coalesced_frame.open);
    if (&part_of(coalesced_frame.data) != &part) return false;
    if (!part.handler->coalesced_frame_arrives({plain(coalesced_frame.open), coalesced_frame.opening,
                                                plain(coalesced_frame.data), coalesced_frame.payload}))
      return false;
    part.has_moved = true;
    return true;
  }
  void frame_is_corrupt(Error const& why) override {
    for (auto& part : parts_)
      if (part.handler != nullptr) part.handler->frame_is_corrupt(why);
  }
  std::span<std::byte> payload_space() override { return arriving_->handler->payload_space(); }
  Status payload_arrived(std::size_t bytes) override {
    arriving_->has_moved = true;
    return arriving_->handler->payload_arrived(bytes);
  }
  void payload_at(std::span<std::byte const> payload) override { arriving_->handler->payload_at(payload); }
  void payload_withdrawn() override { arriving_->handler->payload_withdrawn(); }

  // A handler may drop its references to both parts, so `self` keeps this object alive.
  void link_rests() override {
    auto const self = shared_from_this();
    for (auto& part : parts_)
      if (std::exchange(part.has_moved, false) && part.handler != nullptr) part.handler->link_rests();
  }
  void link_closed(Error why) override {
    auto const self = shared_from_this();
    closed_ = true;
    for (auto& part : parts_)
      if (auto* const handler = std::exchange(part.handler, nullptr)) handler->link_closed(why);
  }

 private:
  struct Part final : Link {
    Part(Whole& of, std::uint8_t with_flag, bool goes_back) : whole(of), flag(with_flag), is_back(goes_back) {}

    void start(LinkHandler& by) override { whole.start(*this, by); }
    void flush() override { whole.link_->flush(); }
    Taken send_coalesced_frame(CoalescedFrame const& coalesced_frame) override {
      auto flagged = coalesced_frame;
      flagged.open.flags |= flag;
      flagged.data.flags |= flag;
      return whole.closed_ ? Taken::nothing : whole.link_->send_coalesced_frame(flagged);
    }
    bool send_message(MessageFrame const& message) override {
      auto flagged = message;
      flagged.header.flags |= flag;
      return !whole.closed_ && whole.link_->send_message(flagged);
    }
    void release(std::uint64_t run) override { whole.link_->release(run); }
    void close() override { close_for(Error(LinkErrc::broken, "the connection was closed for the other direction")); }
    void close_for(Error const& why) override { whole.close(*this, why); }
    [[nodiscard]] std::string_view kind() const override { return whole.link_->kind(); }

    Whole& whole;
    std::uint8_t const flag;
    bool const is_back;
    LinkHandler* handler = nullptr;  // null before start() and once closed
    bool has_moved = false;          // since the last link_rests()
  };

  void start(Part& part, LinkHandler& handler) {
    if (closed_) return handler.link_closed(Error(LinkErrc::broken, "the connection was closed before it was used"));
    part.handler = &handler;
    if (parts_[0].handler != nullptr && parts_[1].handler != nullptr) link_->start(*this);
  }

  void close(Part& part, Error why) {
    auto const self = shared_from_this();
    if (std::exchange(closed_, true)) {
      part.handler = nullptr;
      return;
    }
    link_->close();
    part.handler = nullptr;
    auto& other = parts_[part.is_back ? 0 : 1];
    if (auto* const handler = std::exchange(other.handler, nullptr)) handler->link_closed(std::move(why));
  }

  [[nodiscard]] static std::size_t index_of(FrameHeader const& header) {
    return (header.flags & back_flag) != 0 ? 1 : 0;
  }
  [[nodiscard]] Part& part_of(FrameHeader const& header) { return parts_[index_of(header)]; }
  [[nodiscard]] static FrameHeader plain(FrameHeader header) {
    header.flags &= static_cast<std::uint8_t>(~back_flag);
    return header;
  }

  std::shared_ptr<Link> const link_;
  std::array<Part, 2> parts_;
  Part* arriving_ = nullptr;
  bool turn_ = false;
  bool closed_ = false;
};

}  // namespace

TwoWay two_way(std::shared_ptr<Link> whole) { return std::make_shared<Whole>(std::move(whole))->parts(); }

}  // namespace chorus::links
