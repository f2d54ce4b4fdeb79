// Calls that end without an answer: by the deadline, by cancellation, and with the client.
#include <doctest/doctest.h>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include "http/client/client.hpp"
#include "http/testing/desk.hpp"
#include "http/testing/live_server.hpp"
#include "http/testing/scripted_server.hpp"
#include "http/wire/errc.hpp"

using namespace chorus;
using namespace chorus::http;
using namespace chorus::http::testing;
namespace asio = boost::asio;
using std::chrono::milliseconds;

TEST_CASE("a call ends at its deadline, wherever it waits") {
  Desk desk;
  auto const begin = std::chrono::steady_clock::now();
  {
    ScriptedServer silent({{keep_silent}});
    auto const answer = desk.get(silent.url("/x"), soon(milliseconds(50)));
    CHECK(code_of(answer) == HttpErrc::timed_out);
    CHECK(answer.error().detail == silent.url("/x") + ": no answer before the deadline");
  }
  {
    ScriptedServer half({{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe", keep_silent}});
    // The script closes only after a second request, so the connection stays open and silent.
    CHECK(code_of(desk.get(half.url(), soon(milliseconds(50)))) == HttpErrc::timed_out);
  }
  CHECK(code_of(desk.get("http://127.0.0.1:1/", soon(milliseconds(-1)))) == HttpErrc::timed_out);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(5));
}

TEST_CASE("a kept connection outlives the deadline of the previous call") {
  LiveServer server;
  Desk desk;
  auto patience = milliseconds(300);
  auto first_deadline = soon(patience);
  while (desk.get(server.url("/hello"), first_deadline).has_error()) first_deadline = soon(patience *= 2);
  auto const used = server.connections_used();
  asio::steady_timer timer(desk.io, first_deadline + milliseconds(1));
  timer.wait();
  CHECK(desk.get(server.url("/hello"))->ok());
  CHECK(server.connections_used() == used);
}

TEST_CASE("a cancelled call ends, and its connection is not used again") {
  LiveServer server;
  Desk desk;
  asio::cancellation_signal signal;
  server.on_wait = [&] { asio::post(desk.io, [&] { signal.emit(asio::cancellation_type::terminal); }); };
  bool ended = false;
  asio::co_spawn(
      desk.io, desk.client.send(call(Method::get, server.url("/wait")), soon()),
      asio::bind_cancellation_slot(signal.slot(), [&](std::exception_ptr failure, Result<Answer> const& answer) {
        ended = true;
        CHECK((failure != nullptr || answer.has_error()));
      }));
  desk.io.restart();
  while (!ended) desk.io.run_one();
  CHECK(desk.get(server.url("/hello"))->ok());
  CHECK(server.connections_used() == 2);
}

TEST_CASE("closing the client ends its calls") {
  LiveServer server;
  Desk desk;
  CHECK(desk.get(server.url("/hello"))->ok());
  server.on_wait = [&] { asio::post(desk.io, [&] { desk.client.close(); }); };
  CHECK(code_of(desk.get(server.url("/wait"))) == HttpErrc::peer_closed);
  CHECK(code_of(desk.get(server.url("/hello"))) == HttpErrc::peer_closed);
}
