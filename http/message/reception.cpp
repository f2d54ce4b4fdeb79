#include "http/message/reception.hpp"

#include "http/message/message.hpp"

namespace chorus::http {

std::shared_ptr<Reception> reception_of(Body& body) {
  auto* const source = dynamic_cast<ReceptionSource*>(&body);
  return source == nullptr ? nullptr : source->reception();
}

void only_wait(Body& body) {
  if (auto* const source = dynamic_cast<ReceptionSource*>(&body)) source->only_wait();
}

}  // namespace chorus::http
