// A client of parameters over HTTP, through any worker, with an independent HTTP library.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/fleets/cluster.hpp"

namespace chorus::testing {

class ParameterClient {
 public:
  // `entry`: URL of the worker to ask; `name`: name of this client. A request without an answer for as long as
  // `patience` throws.
  ParameterClient(std::string entry, std::string name, std::chrono::seconds patience = std::chrono::seconds(60))
      : entry_(std::move(entry)), name_(std::move(name)), patience_(patience) {}

  void ask(std::string entry) { entry_ = std::move(entry); }

  template <class T>
  static std::string bytes(std::vector<T> const& values) {
    return {reinterpret_cast<char const*>(values.data()), values.size() * sizeof(T)};
  }
  template <class T>
  static std::vector<T> values(std::string const& bytes) {
    std::vector<T> all(bytes.size() / sizeof(T));
    std::copy_n(bytes.data(), all.size() * sizeof(T), reinterpret_cast<char*>(all.data()));
    return all;
  }

  // POST .../{what} with this client's next sequence number, which grows when the push is acknowledged.
  Answer push(std::string const& parameter, std::string const& bytes, std::optional<std::uint64_t> clock = {},
              std::string const& what = "gradient", httplib::Headers headers = {});
  // Sends a push again.
  Answer repeat(std::string const& parameter, std::string const& bytes, std::uint64_t sequence,
                std::optional<std::uint64_t> clock = {}) const;
  Answer put_value(std::string const& parameter, std::string const& bytes);
  Answer pull(std::string const& parameter, httplib::Headers const& headers = {}, std::string const& query = "") const;
  Answer post(std::string const& path, std::string const& bytes, httplib::Headers const& headers) const;
  [[nodiscard]] std::uint64_t sequence(std::string const& parameter) { return sequences_[parameter]; }

 private:
  [[nodiscard]] std::unique_ptr<httplib::Client> client() const;
  [[nodiscard]] httplib::Headers identity(std::uint64_t sequence, std::optional<std::uint64_t> clock) const;

  std::string entry_;
  std::string const name_;
  std::chrono::seconds const patience_;
  std::map<std::string, std::uint64_t> sequences_;
};

}  // namespace chorus::testing
