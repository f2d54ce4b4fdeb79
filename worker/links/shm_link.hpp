// A link through shared memory, between workers of one host. The TCP connection of the handshake stays: a byte on it
// wakes an end that sleeps, and its end is the end of the link.
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
#include "worker/links/shm_memory.hpp"
#include "worker/links/shm_ring.hpp"

namespace chorus::links {

// What the dialer sends from its own arena is not copied: the acceptor is told where it lies, and frame_sent() follows
// when it has read it. What lies elsewhere is copied once, into a few slots of the arena that are used in turn; a data
// frame larger than a slot becomes several. The acceptor sends through its ring alone. Nothing is allocated per frame.
//
// Somebody polls it: poll() moves what can be moved. Before the thread blocks in the executor, announce_sleep() on
// every link, a sequentially consistent fence, and one more poll(); after it, awake(). Made with std::make_shared.
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
  void release(std::uint64_t run) override;
  void close() override;
  [[nodiscard]] std::string_view kind() const override { return "shm"; }

  // Receives what has come, up to a segment or so, and sees what the peer has received; false if there was nothing.
  bool poll();
  // From now on the peer rings when it has something for this end. The caller's fence follows.
  void announce_sleep();
  void awake();

  // After close() a dialer's link remains until the peer has read what is left for it and closes its end.
  [[nodiscard]] bool is_gone() const { return gone_; }
  // Ends that, and leaves the memory to the region's end if need be.
  void let_go();

 private:
  // A frame in the ring that the peer may still read, or one that is to be told of after those before it.
  struct Pending {
    enum class Kind : std::uint8_t {
      reference,  // the payload lies where the handler has it
      slot,       // a part of a frame was copied: a slot becomes free, and nobody is told
      copied,     // the frame's payload lies nowhere else any more
    };
    std::uint64_t place = 0;
    FrameHeader header;
    Kind kind = Kind::reference;
    bool released = false;  // nobody is to be told
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
  PeerBlock control_;                                 // the dialer's own
  PeerBlock staging_;                                 // likewise; made when it is first needed
  std::shared_ptr<memory::PeerRegion const> region_;  // the dialer's, as the acceptor sees it
  RingSender out_;
  RingReceiver in_;
  std::atomic<std::uint32_t>& own_sleep_;
  std::atomic<std::uint32_t>& peer_sleep_;

  LinkHandler* handler_ = nullptr;  // null before start() and once closed
  bool closing_ = false;            // writes its last words: nothing fails any more
  bool closed_ = false;
  bool gone_ = false;
  bool listens_ = false;  // waits for bells
  bool peer_left_ = false;
  bool flushing_ = false;    // calls from within are answered by its loop
  bool has_unrung_ = false;  // frames that the peer, if it sleeps, is to be woken for
  bool blocked_ = false;     // the frame at hand waits for room
  bool yields_ = false;      // there is room, but it is the others' turn

  OutFrame current_;
  bool has_current_ = false;
  std::size_t put_bytes_ = 0;  // of the frame at hand, when it is put in parts
  bool cannot_stage_ = false;
  std::uint64_t staged_ = 0, unstaged_ = 0;  // parts that were put into slots, and those that were received

  std::vector<Pending> pending_;  // a ring
  std::uint64_t pending_begin_ = 0, pending_end_ = 0;
  std::uint64_t references_ = 0;  // that are pending
  std::uint64_t untold_ = 0;      // frames that are pending: references and copied ones
};

}  // namespace chorus::links
