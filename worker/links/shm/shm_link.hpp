// A link through shared memory, between workers of one host. The TCP connection of the handshake stays open: a byte on
// it, the bell, wakes an end that sleeps, and its close ends the link.
#pragma once

#include <atomic>
#include <boost/asio/ip/tcp.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "worker/links/handler_memory.hpp"
#include "worker/links/link.hpp"
#include "worker/links/shm/shm_memory.hpp"
#include "worker/links/shm/shm_ring.hpp"

namespace chorus::links {

// Payloads in the dialer's arena are not copied: the acceptor reads them there, and frame_sent() follows. Payloads
// elsewhere are copied once, into a few slots of the arena that are used in turn; a data frame larger than a slot
// becomes several frames. The acceptor sends through its ring only. Nothing is allocated per frame.
//
// The user calls poll() to move frames. Before its thread blocks in the executor it calls announce_sleep() on every
// link, makes a sequentially consistent fence, and polls once more; afterwards it calls awake(). Made with
// std::make_shared.
class ShmLink final : public Link, public std::enable_shared_from_this<ShmLink> {
 public:
  static constexpr std::size_t slot_bytes = 128 * 1024;
  static constexpr std::size_t slots = 4;

  // The dialer's end. The arena outlives the link. One thread runs the socket's executor and makes all calls.
  ShmLink(boost::asio::ip::tcp::socket socket, ShmOffer offer);
  // The acceptor's end.
  ShmLink(boost::asio::ip::tcp::socket socket, ShmLoan loan);
  ~ShmLink() override;

  void start(LinkHandler& handler) override;
  void flush() override;
  [[nodiscard]] bool send_message(MessageFrame const& message) override;
  [[nodiscard]] Next look_at_message(MessageFrame& message, unsigned polls) override;
  [[nodiscard]] bool pass_message(MessageFrame const& message) override;
  void release(std::uint64_t run) override;
  void close() override;
  [[nodiscard]] std::string_view kind() const override { return "shm"; }

  // Receives frames, up to about a segment, and notices what the peer has received; false if nothing has moved.
  bool poll();
  // Asks the peer to ring the bell when it has something for this end. The caller's fence follows.
  void announce_sleep();
  void awake();

  // False while a closed dialer's link waits for the peer to read the remaining frames and close its end.
  [[nodiscard]] bool is_gone() const { return gone_; }
  // Ends this wait. Memory that the peer may still read is then kept until the region is destroyed.
  void let_go();

 private:
  // A frame in the ring that the peer may still read, or a copied one whose frame_sent() must follow that of others.
  struct Pending {
    enum class Kind : std::uint8_t {
      reference,  // the payload lies in the handler's memory
      slot,       // a part of a frame in a slot, which becomes free; no frame_sent()
      copied,     // the whole payload was copied
    };
    std::uint64_t place = 0;
    FrameHeader header;
    Kind kind = Kind::reference;
    bool released = false;  // no frame_sent()
  };

  ShmLink(boost::asio::ip::tcp::socket socket, PeerBlock&& control, ShmLoan&& loan, ShmControl& shared, bool dials);

  [[nodiscard]] bool is_broken() const;
  void wait_for_bell();
  void bell_rang();
  bool drain_bells();
  void ring(std::uint32_t what_for);
  void peer_left();
  void fail(Error why);
  void finish(bool peer_is_done);

  bool reap();
  bool put_current();
  bool put_part();
  void pend(std::uint64_t place, FrameHeader const& header, Pending::Kind kind);
  [[nodiscard]] bool can_stage();
  bool read();
  Status take(RingReceiver::Record const& record);
  [[nodiscard]] Result<std::span<std::byte const>> payload_of(RingReceiver::Record const& record) const;

  boost::asio::ip::tcp::socket socket_;
  HandlerMemory bell_memory_;
  PeerBlock control_;                                 // at the dialer only
  PeerBlock staging_;                                 // at the dialer only; made when first needed
  std::shared_ptr<memory::PeerRegion const> region_;  // at the acceptor only: the dialer's region
  RingSender out_;
  RingReceiver in_;
  std::atomic<std::uint32_t>& own_sleep_;
  std::atomic<std::uint32_t>& peer_sleep_;

  LinkHandler* handler_ = nullptr;  // null before start() and once closed
  bool closing_ = false;            // writes its last frames; errors are ignored
  bool closed_ = false;
  bool gone_ = false;
  bool listens_ = false;  // waits for a bell
  bool peer_left_ = false;
  bool flushing_ = false;    // inside flush(), whose loop also serves nested calls
  bool has_unrung_ = false;  // frames were put for which a sleeping peer has not been woken
  bool blocked_ = false;     // the current frame waits for room
  bool yields_ = false;      // there is room, but other links have their turn

  OutFrame current_;
  bool has_current_ = false;
  std::size_t put_bytes_ = 0;  // of the current frame, if it is put in parts
  bool cannot_stage_ = false;
  std::uint64_t staged_ = 0, unstaged_ = 0;  // numbers of parts put into slots, and received from them

  std::vector<Pending> pending_;  // a ring
  std::uint64_t pending_begin_ = 0, pending_end_ = 0;
  std::uint64_t references_ = 0;  // pending references
  std::uint64_t untold_ = 0;      // pending references and copied frames
};

}  // namespace chorus::links
