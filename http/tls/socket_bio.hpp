// A socket for OpenSSL with fewer system calls on busy connections. OpenSSL's own BIO takes two system calls to read a
// record, sends every record as packets of its own, and its read-ahead moves all buffered bytes once per record.
#pragma once

#include <cstddef>
#include <memory>

struct bio_st;

namespace chorus::http {

// Belongs to one stream, and outlives the BIO made from it. The socket is non-blocking, and SocketBio does not close
// it.
class SocketBio {
 public:
  explicit SocketBio(int socket) : socket_(socket) {}
  SocketBio(SocketBio const&) = delete;
  SocketBio& operator=(SocketBio const&) = delete;

  // The caller frees the BIO. Throws std::bad_alloc.
  [[nodiscard]] bio_st* make();

  // Announces that more data follows at once, so the system may wait for it before it sends the last packet.
  void more_follows(bool is_so) { more_ = is_so; }
  // From now on SocketBio may read more from the socket than OpenSSL has asked for.
  void read_ahead();
  [[nodiscard]] bool has_read_ahead() const { return begin_ != end_; }

 private:
  friend struct BioFunctions;
  [[nodiscard]] long read(std::byte* to, std::size_t bytes);
  [[nodiscard]] long write(void const* from, std::size_t bytes);

  int socket_;
  bool more_ = false;
  bool at_end_ = false;
  std::unique_ptr<std::byte[]> ahead_;
  std::size_t begin_ = 0, end_ = 0;  // of the bytes read ahead
};

}  // namespace chorus::http
