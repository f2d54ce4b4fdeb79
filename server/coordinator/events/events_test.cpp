// Events over real sockets: pages, streams, resumption, and readers that fall behind.
#include <doctest/doctest.h>

#include <boost/asio/connect.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include "http/json/json.hpp"
#include "server/coordinator/events/events.hpp"
#include "server/coordinator/testing/fake_worker.hpp"
#include "tests/support/scratch_directory.hpp"

using namespace chorus;
using namespace chorus::coordinator;
using chorus::testing::ScratchDirectory;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;
using boost::asio::awaitable;
using http::Method;
namespace asio = boost::asio;

namespace {

http::Fields accepting(std::string type, std::string last_id = "") {
  http::Fields fields;
  fields.set("Accept", std::move(type));
  if (!last_id.empty()) fields.set("Last-Event-ID", std::move(last_id));
  return fields;
}

awaitable<World::Said> page(World* world, std::string query) {
  auto fields = accepting("application/json");
  co_return co_await world->call(Method::get, "/v1/events" + query, "", std::move(fields));
}

// A follower that reads its stream event by event.
class Follower {
 public:
  Follower(World& world, std::string request) : socket_(world.io), port_(world.port()), request_(std::move(request)) {}

  awaitable<void> connect(std::string last_id = "") {
    co_await socket_.async_connect({asio::ip::address_v4::loopback(), port_}, asio::use_awaitable);
    auto head = "GET " + request_ + " HTTP/1.0\r\n";
    if (!last_id.empty()) head += "Last-Event-ID: " + last_id + "\r\n";
    head += "\r\n";
    co_await asio::async_write(socket_, asio::buffer(head), asio::use_awaitable);
    head_ = co_await until("\r\n\r\n");
  }

  // Returns text like "7 worker.joined", or "" at the end of the stream.
  awaitable<std::string> next() {
    auto const text = co_await until("\n\n");
    if (text.empty()) co_return "";
    id_ = text.substr(4, text.find('\n') - 4);
    auto const number = id_.substr(id_.find('-') + 1);
    auto const type = text.find("event: ") + 7;
    co_return number + " " + text.substr(type, text.find('\n', type) - type);
  }

  [[nodiscard]] std::string const& head() const { return head_; }
  [[nodiscard]] std::string const& id() const { return id_; }  // log and number of the last event

 private:
  awaitable<std::string> until(std::string end) {
    boost::system::error_code ended;
    auto const bytes = co_await asio::async_read_until(socket_, asio::dynamic_buffer(buffer_), end,
                                                       asio::redirect_error(asio::use_awaitable, ended));
    if (ended) co_return "";
    auto text = buffer_.substr(0, bytes);
    buffer_.erase(0, bytes);
    co_return text;
  }

  asio::ip::tcp::socket socket_;
  std::uint16_t const port_;
  std::string const request_;
  std::string buffer_, head_, id_;
};

std::vector<std::string> types_of(World::Said const& said) {
  std::vector<std::string> types;
  for (auto const& item : said.json.at("items").as_array()) types.emplace_back(item.at("type").as_string());
  return types;
}

constexpr char const* body = R"({"group":"g","tensor":"x","algorithm":"ring"})";

awaitable<void> story_of_a_collective(World* world) {
  co_await world->stand();
  CHECK((co_await world->put("/v1/collectives/c?wait=5s", body)).text("/state") == "succeeded");
  CHECK((co_await world->call(Method::delete_, "/v1/workers/w1")).status == 204);
  auto const all = co_await page(world, "");
  CHECK(types_of(all) == std::vector<std::string>{"coordinator.started", "worker.joined", "worker.joined",
                                                  "group.epoch", "collective.pending", "collective.planned",
                                                  "collective.running", "collective.succeeded", "worker.left",
                                                  "group.degraded"});
  CHECK(all.text("/items/0/sequence") == "1");
  CHECK(all.text("/items/7/collective") == "c");
  CHECK(all.text("/items/7/group") == "g");
  CHECK(all.text("/items/9/detail") == "worker w1 has left");
  CHECK(all.text("/next_cursor").empty());
  auto const part = co_await page(world, "?since=3&limit=2");
  CHECK(part.text("/items/0/sequence") == "4");
  CHECK(part.text("/next_cursor") == "5");
  CHECK((co_await page(world, "?since=3&limit=2&cursor=5")).text("/items/0/sequence") == "6");
}

awaitable<void> follow(World* world) {
  Follower follower(*world, "/v1/events?since=0");
  co_await follower.connect();
  CHECK(follower.head().find("Content-Type: text/event-stream") != std::string::npos);
  CHECK(co_await follower.next() == "0 bookmark");
  CHECK(co_await follower.next() == "1 coordinator.started");
  co_await world->stand();
  CHECK(co_await follower.next() == "2 worker.joined");
  CHECK(co_await follower.next() == "3 worker.joined");
  CHECK(co_await follower.next() == "4 group.epoch");
  Follower again(*world, "/v1/events?since=0");
  co_await again.connect("3");
  CHECK(co_await again.next() == "3 bookmark");
  CHECK(co_await again.next() == "4 group.epoch");
  Follower from_now(*world, "/v1/events");
  co_await from_now.connect();
  CHECK(co_await from_now.next() == "4 bookmark");
}

awaitable<void> bookmarks(World* world) {
  Follower follower(*world, "/v1/events");
  co_await follower.connect();
  for (int sign = 0; sign < 4; ++sign) CHECK(co_await follower.next() == "1 bookmark");
}

awaitable<void> what_is_refused(World* world) {
  co_await world->stand();  // events 1 to 4, of which 3 are kept
  auto const gone = co_await page(world, "?since=0");
  CHECK(gone.status == 410);
  CHECK(gone.code() == "compacted");
  CHECK((co_await page(world, "?since=1")).status == 200);
  CHECK((co_await page(world, "")).text("/items/0/sequence") == "2");
  CHECK((co_await page(world, "?since=4")).text("/items") == "[]");
  auto const future = co_await page(world, "?since=5");
  CHECK(future.status == 400);
  CHECK(future.text("/detail").find("newest event is 4") != std::string::npos);
  CHECK((co_await world->get("/v1/events?since=0")).status == 410);
  CHECK((co_await world->get("/v1/events?since=x")).code() == "bad_request");
  CHECK((co_await world->get("/v1/events?since=99999999999999999999")).code() == "bad_request");
  auto last_id = accepting("text/event-stream", "-1");
  CHECK((co_await world->call(Method::get, "/v1/events", "", std::move(last_id))).code() == "bad_request");
}

// A position that an EventSource sends by itself is never refused: after another status than 200 it never tries again.
awaitable<void> resumes_after_what_is_gone(World* world) {
  co_await world->stand();  // events 1 to 4, of which 3 are kept
  Follower late(*world, "/v1/events");
  co_await late.connect("0");
  CHECK(co_await late.next() == "1 reset");
  CHECK(co_await late.next() == "2 worker.joined");
  Follower ahead(*world, "/v1/events");
  co_await ahead.connect("17");
  CHECK(co_await ahead.next() == "1 reset");
  CHECK(co_await ahead.next() == "2 worker.joined");
}

awaitable<void> begins_anew_with_another_log(World* world) {
  Follower before(*world, "/v1/events?since=0");
  co_await before.connect();
  CHECK(co_await before.next() == "0 bookmark");
  CHECK(co_await before.next() == "1 coordinator.started");
  auto const read_so_far = before.id();
  co_await world->restart();
  co_await world->stand();  // now the new log has more events than the reader read of the old one
  Follower after(*world, "/v1/events?since=0");
  co_await after.connect(read_so_far);
  CHECK(co_await after.next() == "0 reset");
  CHECK(co_await after.next() == "1 coordinator.started");
  CHECK(co_await after.next() == "2 worker.joined");
  CHECK(after.id().substr(0, 17) != read_so_far.substr(0, 17));
  auto const refused = co_await page(world, "?since=" + read_so_far);
  CHECK(refused.status == 400);
  CHECK(refused.text("/detail").find("another event log") != std::string::npos);
  auto const present = co_await page(world, "?since=" + after.id());
  CHECK(present.text("/items/0/sequence") == "3");
  CHECK(present.text("/log") == after.id().substr(0, 16));
}

awaitable<void> too_many(World* world) {
  Follower first(*world, "/v1/events"), second(*world, "/v1/events");
  co_await first.connect();
  co_await second.connect();
  CHECK(co_await first.next() == "1 bookmark");
  CHECK(co_await second.next() == "1 bookmark");
  auto const refused = co_await world->get("/v1/events");
  CHECK(refused.status == 503);
  CHECK(refused.fields.find("Retry-After").has_value());
}

awaitable<void> end_with_the_coordinator(World* world) {
  Follower follower(*world, "/v1/events");
  co_await follower.connect();
  CHECK(co_await follower.next() == "1 bookmark");
  co_await world->restart();
  CHECK(co_await follower.next() == "2 coordinator.stopping");
  CHECK(co_await follower.next() == "");
}

// Reads every event once, in order, from a coordinator that is restarted repeatedly.
awaitable<void> over_restarts(World* world) {
  std::uint64_t expected = 1;
  std::string since = "0", log;
  for (int life = 0; life < 4; ++life) {
    CHECK((co_await world->join(0)).status / 100 == 2);
    CHECK((co_await world->put("/v1/groups/g", R"({"size":1})")).status / 100 == 2);
    Follower follower(*world, "/v1/events?since=" + since);
    co_await follower.connect();
    CHECK(co_await follower.next() == since + " bookmark");
    co_await world->restart();
    if (life == 0) log = follower.id().substr(0, 16);
    CHECK(follower.id().substr(0, 16) == log);
    for (auto sent = co_await follower.next(); !sent.empty(); sent = co_await follower.next()) {
      since = sent.substr(0, sent.find(' '));
      CHECK(since == std::to_string(expected++));
    }
  }
  CHECK(expected > 12);
}

void tell(awaitable<void> (*story)(World*), CoordinatorOptions options = {}, std::string const& journal = "") {
  World world(2, options, journal);
  world.tell(story(&world));
}

CoordinatorOptions keeping(std::size_t events) {
  CoordinatorOptions options;
  options.events.kept = events;
  return options;
}

}  // namespace

TEST_CASE("every change is an event, in order and without gaps") { tell(story_of_a_collective); }
TEST_CASE("a follower reads kept events, then new ones, and continues after its last position") { tell(follow); }
TEST_CASE("a stream without events sends bookmarks") {
  CoordinatorOptions options;
  options.events.bookmark = 5ms;
  tell(bookmarks, options);
}
TEST_CASE("events that are gone, or do not exist yet, are refused") { tell(what_is_refused, keeping(3)); }
TEST_CASE("a reader that resumes after events that are gone reads a reset and the kept events") {
  tell(resumes_after_what_is_gone, keeping(3));
}
TEST_CASE("a reader of a coordinator that began without its log misses no event of the new log, and is told") {
  tell(begins_anew_with_another_log);
}
TEST_CASE("more streams than allowed are refused, with a time for the retry") {
  CoordinatorOptions options;
  options.events.streams = 2;
  tell(too_many, options);
}
TEST_CASE("streams end with the coordinator, after its last events") { tell(end_with_the_coordinator); }
TEST_CASE("a follower loses nothing and reads nothing twice over restarts of a coordinator with a journal") {
  ScratchDirectory const here;
  tell(over_restarts, {}, here / "journal");
}

namespace {

awaitable<void> fall_behind(Events* events, Journal* journal) {
  journal->start();
  auto slow = events->follow(EventPosition{}).value();
  CHECK(co_await slow() == "id: 00000000000000aa-0\nevent: bookmark\ndata: {\"sequence\":0}\n\n");
  for (int number = 0; number < 11; ++number) {
    api::Event event;
    event.type = "worker.joined";
    events->publish(std::move(event));
  }
  CHECK((co_await slow()).empty());
  slow = nullptr;
  CHECK(events->streams() == 0);
  CHECK(events->follow(EventPosition{}).error().code == http::ProblemCode::compacted);
  CHECK(events->follow(EventPosition{0xaa, 1}).has_value());
  co_await journal->stop();
}

}  // namespace

TEST_CASE("a reader that the ring has overtaken is dropped, and told so when it resumes") {
  asio::io_context io(1);
  spdlog::logger log("test");
  Journal journal(io.get_executor(), nullptr, {}, {}, log);
  Events events(io.get_executor(), journal, {.kept = 10}, 0xaa);
  asio::co_spawn(io, fall_behind(&events, &journal), [](std::exception_ptr thrown) {
    if (thrown) std::rethrow_exception(thrown);
  });
  io.run();
}
