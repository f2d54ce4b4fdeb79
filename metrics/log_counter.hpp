// A log sink that counts lines by level and writes nothing.
#pragma once

#include <spdlog/sinks/sink.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

namespace spdlog {
class logger;
}

namespace chorus::metrics {

// Thread-safe. Lines below the logger's level do not reach the sink.
class LogCounter final : public spdlog::sinks::sink {
 public:
  void log(spdlog::details::log_msg const& message) override {
    counts_[static_cast<std::size_t>(message.level)].fetch_add(1, std::memory_order_relaxed);
  }
  void flush() override {}
  void set_pattern(std::string const&) override {}
  void set_formatter(std::unique_ptr<spdlog::formatter>) override {}

  [[nodiscard]] std::uint64_t count(spdlog::level::level_enum level) const {
    return counts_[static_cast<std::size_t>(level)].load(std::memory_order_relaxed);
  }

 private:
  std::array<std::atomic<std::uint64_t>, spdlog::level::n_levels> counts_{};
};

// Returns the LogCounter among the logger's sinks; null if there is none.
[[nodiscard]] std::shared_ptr<LogCounter const> log_counter_of(spdlog::logger const& logger);

}  // namespace chorus::metrics
