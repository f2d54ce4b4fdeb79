// A client for tests, with blocking calls.
#pragma once

#include <doctest/doctest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <optional>

#include "http/client/client.hpp"
#include "http/wire/errc.hpp"

namespace chorus::http::testing {

inline TimePoint soon(std::chrono::milliseconds time = std::chrono::milliseconds(10000)) {
  return std::chrono::steady_clock::now() + time;
}

inline Call call(Method method, std::string url, std::string body = "") {
  Call result;
  result.method = method;
  result.url = std::move(url);
  result.body = std::move(body);
  return result;
}

// A client and the io_context that the test's thread runs for it.
struct Desk {
  boost::asio::io_context io{1};
  Client client{io.get_executor()};

  template <class T>
  Result<T> run(boost::asio::awaitable<Result<T>> task) {
    std::optional<Result<T>> result;
    boost::asio::co_spawn(io, keep(std::move(task), result), [](std::exception_ptr failure) {
      if (failure) std::rethrow_exception(failure);
    });
    io.restart();
    while (!result) io.run_one();
    return std::move(*result);
  }

  template <class T>
  static boost::asio::awaitable<void> keep(boost::asio::awaitable<Result<T>> task, std::optional<Result<T>>& result) {
    result.emplace(co_await std::move(task));
  }

  Result<Answer> send(Call request, TimePoint deadline = soon()) {
    return run(client.send(std::move(request), deadline));
  }
  Result<Answer> get(std::string url, TimePoint deadline = soon()) {
    return send(call(Method::get, std::move(url)), deadline);
  }
  Result<Client::Upgraded> upgrade(std::string url, std::string protocol) {
    return run(client.upgrade(std::move(url), std::move(protocol), {}, soon()));
  }
};

inline HttpErrc code_of(Result<Answer> const& answer) {
  REQUIRE(answer.has_error());
  return static_cast<HttpErrc>(answer.error().code.value());
}

}  // namespace chorus::http::testing
