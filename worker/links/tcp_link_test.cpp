#include "worker/links/tcp_link.hpp"

#include <doctest/doctest.h>

#include <sys/mman.h>

#include <algorithm>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/write.hpp>
#include <string>
#include <vector>

using namespace chorus::links;
using boost::asio::ip::tcp;

namespace {

// A handler without frames of its own. Receives the frames of coalesced frames one by one.
class User final : public LinkHandler {
 public:
  bool next_frame(OutFrame&) override { return false; }
  void frame_sent(FrameHeader const& header) override { sent.push_back(header.type); }
  chorus::Status frame_arrives(FrameHeader const& header) override {
    (header.type == FrameType::open ? opens : data) += 1;
    return chorus::ok();
  }
  void frame_is_corrupt(chorus::Error const&) override {}
  std::span<std::byte> payload_space() override { return elsewhere.empty() ? std::span(space) : elsewhere; }
  chorus::Status payload_arrived(std::size_t bytes) override {
    is_intact = is_intact && std::all_of(space.begin(), space.begin() + static_cast<std::ptrdiff_t>(bytes),
                                         [](std::byte byte) { return byte == std::byte{7}; });
    return chorus::ok();
  }
  void payload_at(std::span<std::byte const>) override {}
  void payload_withdrawn() override {}
  void link_rests() override {}
  void link_closed(chorus::Error why) override {
    is_closed = true;
    why_closed = why.detail;
  }

  std::vector<std::byte> space = std::vector<std::byte>(8192);
  std::span<std::byte> elsewhere;  // used instead of `space` if not empty
  std::vector<FrameType> sent;
  std::size_t opens = 0, data = 0;
  bool is_intact = true, is_closed = false;
  std::string why_closed;
};

// A link and the socket of its peer.
struct LinkAndSocket {
  LinkAndSocket() {
    tcp::acceptor acceptor(io, tcp::endpoint(boost::asio::ip::address_v4::loopback(), 0));
    tcp::socket here(io);
    here.connect(acceptor.local_endpoint());
    there = acceptor.accept();
    link = std::make_shared<TcpLink>(chorus::http::Connection(std::move(here), nullptr, ""), Framing::plain);
  }
  boost::asio::io_context io{1};
  std::shared_ptr<TcpLink> link;
  tcp::socket there{io};
};

// Two links on one connection that holds few bytes.
struct SlowPair {
  SlowPair() {
    tcp::acceptor acceptor(io, tcp::endpoint(boost::asio::ip::address_v4::loopback(), 0));
    acceptor.set_option(boost::asio::socket_base::receive_buffer_size(10000));
    tcp::socket here(io);
    here.open(tcp::v4());
    here.set_option(boost::asio::socket_base::send_buffer_size(10000));
    here.connect(acceptor.local_endpoint());
    auto there = acceptor.accept();
    from = std::make_shared<TcpLink>(chorus::http::Connection(std::move(here), nullptr, ""), Framing::plain);
    to = std::make_shared<TcpLink>(chorus::http::Connection(std::move(there), nullptr, ""), Framing::plain);
  }
  boost::asio::io_context io{1};
  std::shared_ptr<TcpLink> from, to;
};

}  // namespace

TEST_CASE("a link that was never started can be closed") {
  LinkAndSocket pair;
  auto& [io, link, there] = pair;
  CHECK_FALSE(link->poll());
  link->close();
  CHECK(link->is_gone());
  char byte = 0;
  boost::system::error_code error;
  CHECK(there.read_some(boost::asio::buffer(&byte, 1), error) == 0);
  CHECK(error == boost::asio::error::eof);
}

TEST_CASE("coalesced frames are sent until the peer is slow, and the rest of the last one later") {
  SlowPair pair;
  auto& [io, from, to] = pair;
  std::vector<std::byte> opening(sizeof(Open), std::byte{7});
  std::vector<std::byte> const intact(coalesced_frame_bytes_max, std::byte{7}),
      other(coalesced_frame_bytes_max, std::byte{1});
  auto payload = intact;
  CoalescedFrame coalesced_frame;
  coalesced_frame.open.type = FrameType::open;
  coalesced_frame.open.length = static_cast<std::uint32_t>(opening.size());
  coalesced_frame.opening = opening;
  coalesced_frame.data.length = static_cast<std::uint32_t>(payload.size());
  User sender, receiver;
  CHECK(from->send_coalesced_frame(coalesced_frame) == Taken::nothing);  // before it is started
  from->start(sender);
  std::size_t coalesced_frames = 0;
  auto taken = Taken::whole;
  while (taken == Taken::whole) {
    payload = intact;
    coalesced_frame.payload = payload;
    taken = from->send_coalesced_frame(coalesced_frame);
    if (taken == Taken::whole) payload = other;  // allowed, because the payload was taken whole
    if (taken != Taken::nothing) ++coalesced_frames;
  }
  CHECK(coalesced_frames > 1);
  CHECK(from->send_coalesced_frame(coalesced_frame) == Taken::nothing);
  CHECK(sender.sent.empty());
  to->start(receiver);
  while (receiver.data < coalesced_frames) REQUIRE(io.run_one() == 1);
  CHECK(receiver.opens == coalesced_frames);
  CHECK(receiver.is_intact);
  while (from->send_coalesced_frame(coalesced_frame) != Taken::whole)
    REQUIRE(io.run_one() == 1);  // until the link has noticed
  while (receiver.data < coalesced_frames + 1) REQUIRE(io.run_one() == 1);
  CHECK((sender.sent.empty() ? Taken::nothing : Taken::in_part) == taken);
  if (taken == Taken::in_part) CHECK(sender.sent.back() == FrameType::data);
  from->close();
  CHECK(from->send_coalesced_frame(coalesced_frame) == Taken::nothing);
  while (!receiver.is_closed) REQUIRE(io.run_one() == 1);
  CHECK(receiver.is_intact);
}

TEST_CASE(
    "small messages are sent until the peer is slow, and again when it has read them, whatever becomes of their "
    "memory") {
  SlowPair pair;
  auto& [io, from, to] = pair;
  std::vector<std::byte> content(message_content_max, std::byte{7});
  MessageFrame message{{}, {0x07070707, 0x07070707}, content};
  message.header.type = FrameType::message;
  message.header.length = static_cast<std::uint32_t>(sizeof message.head + content.size());
  User sender, receiver;
  CHECK_FALSE(from->send_message(message));  // before it is started
  from->start(sender);
  std::size_t messages = 0;
  for (bool is_taken = true; is_taken;) {
    content.assign(content.size(), std::byte{7});
    is_taken = from->send_message(message);
    content.assign(content.size(), std::byte{1});  // allowed, because what the socket does not take is copied
    if (is_taken) ++messages;
  }
  CHECK(messages > 1);
  to->start(receiver);
  while (receiver.data < messages) REQUIRE(io.run_one() == 1);
  content.assign(content.size(), std::byte{7});
  while (!from->send_message(message)) REQUIRE(io.run_one() == 1);  // until the link has noticed
  while (receiver.data < messages + 1) REQUIRE(io.run_one() == 1);
  CHECK(sender.sent.empty());
  from->close();
  CHECK_FALSE(from->send_message(message));
  while (!receiver.is_closed) REQUIRE(io.run_one() == 1);
  CHECK(receiver.is_intact);
}

TEST_CASE("memory that cannot be received into ends the link instead of keeping its thread for ever") {
  LinkAndSocket pair;
  auto& [io, link, there] = pair;
  constexpr std::size_t bytes = 8192;
  User user;
  user.elsewhere = {static_cast<std::byte*>(mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)),
                    bytes};
  link->start(user);
  FrameHeader header;
  header.type = FrameType::data;
  header.length = bytes;
  boost::asio::write(there, boost::asio::buffer(&header, sizeof header));
  while (user.data == 0) REQUIRE(io.run_one() == 1);
  boost::asio::write(there, boost::asio::buffer(user.space));
  while (!user.is_closed) REQUIRE(io.run_one() == 1);
  CHECK(user.why_closed.find("Bad address") == 0);
  munmap(user.elsewhere.data(), bytes);
}
