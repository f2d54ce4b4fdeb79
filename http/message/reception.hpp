// Tells whether a client has received its answer, as far as the connection of its request shows.
#pragma once

#include <cstdint>
#include <memory>

namespace chorus::http {

class Body;

// Shared by the session, which updates it, and the handler that asked for it; usable long after the connection has
// ended. Used on the server's thread.
class Reception {
 public:
  enum class State : std::uint8_t {
    open,    // the answer is not sent completely, and the connection stands
    taken,   // the client has sent another request on the connection, or closed it after receiving everything
    broken,  // the connection ended before that, or the client closed its side of it before the answer was sent
  };

  Reception() = default;
  virtual ~Reception() = default;
  Reception(Reception const&) = delete;
  Reception& operator=(Reception const&) = delete;

  // Returns the current state; looks at the socket while the state is open.
  [[nodiscard]] virtual State state() = 0;
};

// A body that arrives over a connection.
class ReceptionSource {
 public:
  ReceptionSource() = default;
  virtual ~ReceptionSource() = default;
  ReceptionSource(ReceptionSource const&) = delete;
  ReceptionSource& operator=(ReceptionSource const&) = delete;

  [[nodiscard]] virtual std::shared_ptr<Reception> reception() = 0;
  virtual void only_wait() = 0;
};

// Returns the reception of the answer to the request with this body, for handlers that must know whether the answer
// arrives; null if the body does not come from a connection.
[[nodiscard]] std::shared_ptr<Reception> reception_of(Body& body);

// The handler of the request with this body changes nothing from now on, and only waits for its client: it is cancelled
// when the client closes the connection, or one half of it. Does nothing if the body does not come from a connection.
void only_wait(Body& body);

}  // namespace chorus::http
