// The receptions of a session's answers: see Reception.
#pragma once

#include <memory>
#include <vector>

#include "http/message/reception.hpp"
#include "http/wire/wire.hpp"

namespace chorus::http {

class SessionReception final : public Reception {
 public:
  // The wire lives until end() is called.
  explicit SessionReception(Wire& wire) : wire_(&wire) {}

  [[nodiscard]] State state() override;
  // The session starts to send the answer: a client that has closed by now does not wait for it.
  void answering();
  void end(State state);

 private:
  Wire* wire_;
  bool is_answering_ = false;
  State state_ = State::open;
};

// The receptions of one connection whose clients have not yet shown that they have the answer. The wire outlives them.
class Receptions {
 public:
  explicit Receptions(Wire& wire) : wire_(wire) {}
  ~Receptions() { end(Reception::State::broken); }
  Receptions(Receptions const&) = delete;
  Receptions& operator=(Receptions const&) = delete;

  [[nodiscard]] std::shared_ptr<SessionReception> begin();
  // The client has sent something after the last answer.
  void heard() { end(Reception::State::taken); }
  // An answer could not be sent completely.
  void cut() { end(Reception::State::broken); }
  // The connection has ended. The answers count as taken if the client closed, or fell silent, after receiving
  // everything.
  void end();

 private:
  void end(Reception::State state);

  Wire& wire_;
  std::vector<std::shared_ptr<SessionReception>> pending_;
};

}  // namespace chorus::http
