// Detects damage of the worker's shared memory. Any process that may open its file may truncate it; the contents are
// then lost, although reads return zeros (memory/bus_guard.hpp).
#pragma once

#include <memory>
#include <optional>

#include "http/routing/router.hpp"
#include "worker/memory/arena.hpp"

namespace spdlog {
class logger;
}

namespace chorus::service {

// Used on the control thread only.
class OwnMemory {
 public:
  // arena: null if no memory is shared.
  OwnMemory(std::shared_ptr<memory::Arena const> arena, spdlog::logger& log) : arena_(std::move(arena)), log_(log) {}

  // Why the contents can no longer be trusted; empty if the memory is whole. Asks the system, and logs damage once.
  [[nodiscard]] std::optional<std::string> damage();

  // Wraps a handler so that it answers memory_damaged once the memory is damaged, also if that happens during the
  // request. DELETE still works. This object outlives the handler.
  [[nodiscard]] http::Handler guarded(http::Handler handler);

 private:
  boost::asio::awaitable<http::Response> answer(http::Handler const& handler, http::Request const& request,
                                                http::Body& body);
  // Does not ask the system: a read of missing memory has set the flag.
  [[nodiscard]] bool is_known_damaged() const { return arena_ != nullptr && arena_->mapping().is_broken(); }

  std::shared_ptr<memory::Arena const> const arena_;
  spdlog::logger& log_;
  bool is_said_ = false;
};

}  // namespace chorus::service
