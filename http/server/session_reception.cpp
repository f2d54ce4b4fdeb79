#include "http/server/session_reception.hpp"

#include <utility>

namespace chorus::http {

Reception::State SessionReception::state() {
  if (wire_ == nullptr) return state_;
  auto const peer = wire_->peer();
  if (peer == Wire::Peer::stays) return state_;
  // A reset that the session's read has taken from the socket looks like a close, until the session goes on.
  if (peer == Wire::Peer::has_closed && is_answering_) return state_;
  end(State::broken);
  return state_;
}

void SessionReception::answering() {
  static_cast<void>(state());
  is_answering_ = true;
}

void SessionReception::end(State state) {
  if (wire_ != nullptr) state_ = state;
  wire_ = nullptr;
}

std::shared_ptr<SessionReception> Receptions::begin() {
  return pending_.emplace_back(std::make_shared<SessionReception>(wire_));
}

void Receptions::end() {
  if (pending_.empty()) return;
  bool const in_order = (wire_.at_end() || wire_.expired()) && wire_.is_acknowledged();
  end(in_order ? Reception::State::taken : Reception::State::broken);
}

void Receptions::end(Reception::State state) {
  for (auto const& reception : std::exchange(pending_, {})) reception->end(state);
}

}  // namespace chorus::http
