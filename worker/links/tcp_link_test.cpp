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

// Has nothing to write but parcels, whose frames it takes one by one.
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
  std::span<std::byte> elsewhere;  // instead, if it is anywhere
  std::vector<FrameType> sent;
  std::size_t opens = 0, data = 0;
  bool is_intact = true, is_closed = false;
  std::string why_closed;
};

// A link, and the socket that it is connected with.
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

}  // namespace

TEST_CASE("a link that nobody wants any more when it is there is closed without having been started") {
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

TEST_CASE("parcels are sent until the other side is slow, and the rest of the last one by and by") {
  boost::asio::io_context io{1};
  tcp::acceptor acceptor(io, tcp::endpoint(boost::asio::ip::address_v4::loopback(), 0));
  acceptor.set_option(boost::asio::socket_base::receive_buffer_size(10000));
  tcp::socket here(io);
  here.open(tcp::v4());
  here.set_option(boost::asio::socket_base::send_buffer_size(10000));
  here.connect(acceptor.local_endpoint());
  auto there = acceptor.accept();
  auto const from = std::make_shared<TcpLink>(chorus::http::Connection(std::move(here), nullptr, ""), Framing::plain);
  auto const to = std::make_shared<TcpLink>(chorus::http::Connection(std::move(there), nullptr, ""), Framing::plain);
  std::vector<std::byte> opening(sizeof(Open), std::byte{7});
  std::vector<std::byte> const intact(parcel_bytes_max, std::byte{7}), other(parcel_bytes_max, std::byte{1});
  auto payload = intact;
  Parcel parcel;
  parcel.open.type = FrameType::open;
  parcel.open.length = static_cast<std::uint32_t>(opening.size());
  parcel.opening = opening;
  parcel.data.length = static_cast<std::uint32_t>(payload.size());
  User sender, receiver;
  CHECK(from->send_parcel(parcel) == Taken::nothing);  // before it is started
  from->start(sender);
  std::size_t parcels = 0;
  auto taken = Taken::whole;
  while (taken == Taken::whole) {
    payload = intact;
    parcel.payload = payload;
    taken = from->send_parcel(parcel);
    if (taken == Taken::whole) payload = other;  // which may be done with what was taken whole
    if (taken != Taken::nothing) ++parcels;
  }
  CHECK(parcels > 1);
  CHECK(from->send_parcel(parcel) == Taken::nothing);
  CHECK(sender.sent.empty());
  to->start(receiver);
  while (receiver.data < parcels) REQUIRE(io.run_one() == 1);
  CHECK(receiver.opens == parcels);
  CHECK(receiver.is_intact);
  while (from->send_parcel(parcel) != Taken::whole) REQUIRE(io.run_one() == 1);  // until it has noticed
  while (receiver.data < parcels + 1) REQUIRE(io.run_one() == 1);
  CHECK((sender.sent.empty() ? Taken::nothing : Taken::in_part) == taken);
  if (taken == Taken::in_part) CHECK(sender.sent.back() == FrameType::data);
  from->close();
  CHECK(from->send_parcel(parcel) == Taken::nothing);
  while (!receiver.is_closed) REQUIRE(io.run_one() == 1);
  CHECK(receiver.is_intact);
}

TEST_CASE("a place where nothing can be received ends the link instead of keeping its thread for ever") {
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
