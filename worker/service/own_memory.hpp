// Whether the memory that this worker shares with others is still there. Its file may be truncated by whoever may open
// it; what lay in it is then lost, though reading it gives zeros (memory/bus_guard.hpp).
#pragma once

#include <memory>
#include <optional>

#include "http/router.hpp"
#include "worker/memory/arena.hpp"

namespace spdlog {
class logger;
}

namespace chorus::service {

// On the control thread.
class OwnMemory {
 public:
  // arena: null where no memory is shared.
  OwnMemory(std::shared_ptr<memory::Arena const> arena, spdlog::logger& log) : arena_(std::move(arena)), log_(log) {}

  // Why nothing in it is to be believed any more; nothing: it is whole. Asks the system, and says it in the log once.
  [[nodiscard]] std::optional<std::string> damage();

  // The handler, which, once the memory is damaged, takes nothing in and gives nothing out but problem memory_damaged,
  // also where it comes to be so meanwhile. DELETE goes on. This object outlives it.
  [[nodiscard]] http::Handler guarded(http::Handler handler);

 private:
  boost::asio::awaitable<http::Response> answer(http::Handler const& handler, http::Request const& request,
                                                http::Body& body);
  // Without asking: whoever read where nothing is has noticed.
  [[nodiscard]] bool is_known_damaged() const { return arena_ != nullptr && arena_->mapping().is_broken(); }

  std::shared_ptr<memory::Arena const> const arena_;
  spdlog::logger& log_;
  bool is_said_ = false;
};

}  // namespace chorus::service
