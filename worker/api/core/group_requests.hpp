// What a program asks its coordinator about groups: to make one, to delete one.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "collectives/core/result.hpp"
#include "http/client/client.hpp"
#include "worker/api/worker.hpp"

namespace chorus::embedded {

// Name, members and order can be, and `self`, the id of the caller's worker, is a member. Errors:
// WorkerErrc::bad_argument.
[[nodiscard]] Status check_group(std::string const& name, GroupOptions const& options, std::string const& self);
[[nodiscard]] Status check_name(std::string const& group);

// Requests; `coordinator` is its URL. `key`: the same for all attempts of one request, so that they make one epoch.
[[nodiscard]] http::Call to_make(std::string const& coordinator, std::string const& name, GroupOptions const& options,
                                 std::string key);
[[nodiscard]] http::Call to_delete(std::string const& coordinator, std::string const& name);

// How one attempt has ended.
struct Attempt {
  std::optional<Error> failure;  // WorkerErrc, or EngineErrc::forbidden; empty: it has succeeded
  bool may_succeed_later = false;
  std::string body;  // of the answer
};

// The client outlives the attempt, and this runs on its thread.
[[nodiscard]] boost::asio::awaitable<Attempt> attempt(http::Client* client, http::Call call,
                                                      std::chrono::steady_clock::time_point deadline);

}  // namespace chorus::embedded
