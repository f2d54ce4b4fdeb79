// A list of services of which one answers for all; remembers the one that answered last.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "http/client/client.hpp"

namespace chorus::http {

// Used on one thread.
class Turns {
 public:
  // At least one URL, each without a path. Callers use the first URL.
  explicit Turns(std::vector<std::string> urls) : urls_(std::move(urls)), present_(urls_.front()) {}

  [[nodiscard]] bool has(std::string_view url) const;

  // Sends, with `one`, to the service that answered last; see Client::take_turns(). No service is asked twice. If none
  // takes the request, the first that said why answers. The object outlives the call.
  using SendOne = std::function<boost::asio::awaitable<Result<Answer>>(Call, TimePoint)>;
  boost::asio::awaitable<Result<Answer>> send(Call call, TimePoint deadline, SendOne one);

 private:
  void pass_on(std::string_view url, std::string_view listed);

  std::vector<std::string> const urls_;
  std::string present_;
};

}  // namespace chorus::http
