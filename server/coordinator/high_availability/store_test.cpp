// The promises of a store, checked on a SQLite file and on a real etcd.
#include <doctest/doctest.h>
#include <httplib.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/json/parse.hpp>
#include <functional>
#include <future>
#include <mutex>
#include <thread>

#include "base/runtime/run_to_end.hpp"
#include "server/coordinator/high_availability/etcd_store.hpp"
#include "server/coordinator/journal/journal_file.hpp"
#include "tests/support/fleets/etcd.hpp"
#include "tests/support/mentions.hpp"

using namespace chorus;
using namespace chorus::coordinator;
using namespace chorus::testing;

namespace {

using Rows = std::vector<Row>;

// A leader that does not renew its lease: its writes are accepted until another coordinator leads.
class Leader {
 public:
  Leader(Etcd const& etcd, std::string const& cluster, std::chrono::seconds lease = std::chrono::seconds(600))
      : Leader(options(etcd, cluster), lease) {}
  explicit Leader(EtcdOptions const& options, std::chrono::seconds lease = std::chrono::seconds(600))
      : client_(io_.get_executor(), options), election_(client_, 1, patience(lease)) {
    leadership_ = http::run_to_end(io_, election_.campaign("http://here:1")).value();
    store_ = std::make_unique<EtcdStore>(options, leadership_, [this] { ++deposed_; });
  }

  [[nodiscard]] EtcdStore& store() { return *store_; }
  [[nodiscard]] int deposed() const { return deposed_; }
  void resign() { http::run_to_end(io_, election_.resign(std::chrono::steady_clock::now() + std::chrono::seconds(5))); }

  static EtcdOptions options(Etcd const& etcd, std::string const& cluster) {
    EtcdOptions options;
    options.endpoints = {etcd.url(0)};
    options.cluster = cluster;
    return options;
  }

 private:
  static ElectionPatience patience(std::chrono::seconds lease) {
    ElectionPatience patience;
    patience.lease = lease;
    return patience;
  }

  boost::asio::io_context io_;
  EtcdClient client_;
  Election election_;
  Leadership leadership_;
  std::unique_ptr<EtcdStore> store_;
  int deposed_ = 0;
};

// A gateway to etcd that passes requests on, refuses them, or holds them back without an answer.
class SlowGateway {
 public:
  explicit SlowGateway(Etcd const& etcd) {
    server_.Post(".*", [this, &etcd](httplib::Request const& request, httplib::Response& response) {
      if (passes_ == 0)
        response.status = 500;
      else if (!keep(request.body))
        response.set_content(etcd.post(request.path, request.body), "application/json");
      if (passes_ > 0) --passes_;
    });
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::thread([this] { server_.listen_after_bind(); });
  }
  ~SlowGateway() {
    release_.set_value();
    server_.stop();
    thread_.join();
  }
  SlowGateway(SlowGateway const&) = delete;
  SlowGateway& operator=(SlowGateway const&) = delete;

  [[nodiscard]] std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  void hold() { holds_ = true; }
  // Passes so many requests on, and refuses all later ones; -1: refuses none.
  void pass(int requests) { passes_ = requests; }
  // Returns the first request that was held back.
  [[nodiscard]] std::string held() {
    std::scoped_lock const lock(mutex_);
    return held_;
  }

 private:
  bool keep(std::string const& body) {
    if (!holds_) return false;
    {
      std::scoped_lock const lock(mutex_);
      if (held_.empty()) held_ = body;
    }
    released_.wait();
    return true;
  }

  httplib::Server server_;
  int port_ = 0;
  std::thread thread_;
  std::atomic<bool> holds_ = false;
  std::atomic<int> passes_ = -1;
  std::mutex mutex_;
  std::string held_;
  std::promise<void> release_;
  std::shared_future<void> const released_{release_.get_future()};
};

Row row(int number, std::size_t bytes = 10) {
  char key[16];
  std::snprintf(key, sizeof key, "c%06d", number);
  return {Table::collectives, key, std::string(bytes, static_cast<char>('a' + number % 26))};
}

// `open` returns the store as a restarted coordinator finds it.
void check_promises(std::function<Store&()> const& open) {
  CHECK(open().read().value().empty());
  // Rows are replaced and deleted.
  REQUIRE(open().write(Rows{row(1), row(2), {Table::workers, "w0", "{}"}, {Table::shards, "p/0", "[1]"}}).has_value());
  REQUIRE(open().write(Rows{row(1, 5), {Table::collectives, row(2).key, std::nullopt}}).has_value());
  CHECK(open().read().value() == Rows{{Table::workers, "w0", "{}"}, row(1, 5), {Table::shards, "p/0", "[1]"}});
  // A write without rows checks the store.
  CHECK(open().write(Rows()).has_value());
  // A body with any characters that JSON can contain.
  std::string const odd("\"\\ \n\t\0 \x7f \xc3\xa4", 12);
  REQUIRE(open().write(Rows{{Table::events, "1", odd}}).has_value());
  auto const rows = open().read().value();
  CHECK(std::ranges::find(rows, Row{Table::events, "1", odd}) != rows.end());
  REQUIRE(open().write(Rows{{Table::events, "1", std::nullopt}}).has_value());
  // A write with more rows and bytes than etcd accepts in one transaction, and then a shorter row.
  Rows many;
  for (int i = 10; i < 500; ++i) many.push_back(row(i, 100));
  many.push_back(row(500, 3 << 20));
  REQUIRE(open().write(many).has_value());
  auto const found = open().read().value();
  CHECK(found.size() == 3 + many.size());
  CHECK(std::ranges::find(found, many.back()) != found.end());
  REQUIRE(open().write(Rows{row(500, 700)}).has_value());
  auto const shorter = open().read().value();
  CHECK(std::ranges::find(shorter, row(500, 700)) != shorter.end());
  for (auto& one : many) one.body.reset();
  REQUIRE(open().write(many).has_value());
  CHECK(open().read().value() == Rows{{Table::workers, "w0", "{}"}, row(1, 5), {Table::shards, "p/0", "[1]"}});
  // Names of parameters begin with those of others, and a slash.
  auto const parameter = [](std::string const& name, std::size_t bytes) {
    return Row{Table::parameters, name, std::string(bytes, 'p')};
  };
  auto const of_parameters = [&] {
    auto all = open().read().value();
    std::erase_if(all, [](Row const& one) { return one.table != Table::parameters; });
    return all;
  };
  Rows const others{parameter("a/0000", 10), parameter("a/0001", 10), parameter("a/weight", 10)};
  for (std::size_t const bytes : {std::size_t{10}, std::size_t{2} << 20}) {
    CAPTURE(bytes);
    auto of_a = others;
    of_a.insert(of_a.begin(), parameter("a", bytes));
    REQUIRE(open().write(of_a).has_value());
    CHECK(of_parameters() == of_a);
    REQUIRE(open().write(Rows{parameter("a", 5)}).has_value());
    of_a.front() = parameter("a", 5);
    CHECK(of_parameters() == of_a);
    REQUIRE(open().write(Rows{parameter("a", bytes)}).has_value());
    REQUIRE(open().write(Rows{{Table::parameters, "a", std::nullopt}}).has_value());
    CHECK(of_parameters() == others);
  }
}

}  // namespace

TEST_CASE("a journal file keeps the promises of a store") {
  ScratchDirectory const here;
  std::unique_ptr<JournalFile> file;
  check_promises([&]() -> Store& {
    file.reset();
    file = JournalFile::open(here / "journal").value();
    return *file;
  });
}

TEST_CASE("etcd keeps the promises of a store") {
  if (auto const why = Etcd::missing(); !why.empty()) {
    MESSAGE("skipped: " << why);
    return;
  }
  Etcd const etcd;
  std::unique_ptr<Leader> leader;
  check_promises([&]() -> Store& {
    if (leader) leader->resign();
    leader = std::make_unique<Leader>(etcd, "a");
    CHECK(leader->store().read().has_value());
    return leader->store();
  });
  // Another cluster does not see these rows.
  CHECK(Leader(etcd, "b").store().read().value().empty());
}

TEST_CASE("clients are sent to another coordinator that leads, and to no key of this one or of a command") {
  if (auto const why = Etcd::missing(); !why.empty()) {
    MESSAGE("skipped: " << why);
    return;
  }
  Etcd const etcd;
  boost::asio::io_context io;
  EtcdClient client(io.get_executor(), Leader::options(etcd, "a"));
  for (auto const* url : {"http://another:1", "http://own:1", url_of_holder.data()}) {
    CAPTURE(url);
    etcd.post("/v3/kv/put", R"({"key":")" + to_base64("/chorus/a/leader") + R"(","value":")" + to_base64(url) + "\"}");
    Election election(client, 1);
    CHECK_FALSE(http::run_to_end(io, election.try_to_lead("http://own:1")).value().has_value());
    CHECK(election.leader() == url);
    CHECK(election.other_leader().has_value() == (url == std::string("http://another:1")));
  }
}

TEST_CASE("a former leader's write changes nothing and reports that it leads no longer") {
  if (auto const why = Etcd::missing(); !why.empty()) {
    MESSAGE("skipped: " << why);
    return;
  }
  Etcd const etcd;
  Leader former(etcd, "a");
  REQUIRE(former.store().write(Rows{row(1)}).has_value());
  former.resign();
  Leader present(etcd, "a");
  auto const refused = former.store().write(Rows{row(2), row(3)});
  REQUIRE(refused.has_error());
  CHECK(mentions(refused.error().detail, "another coordinator leads"));
  CHECK(former.deposed() == 1);
  Rows many;
  for (int i = 0; i < 300; ++i) many.push_back(row(i));
  CHECK(former.store().write(many).has_error());
  CHECK(present.store().read().value() == Rows{row(1)});
}

TEST_CASE("a request that was given up, and that etcd receives after a later one, changes nothing") {
  if (auto const why = Etcd::missing(); !why.empty()) {
    MESSAGE("skipped: " << why);
    return;
  }
  Etcd const etcd;
  SlowGateway slow(etcd);
  auto options = Leader::options(etcd, "a");
  options.endpoints.insert(options.endpoints.begin(), slow.url());
  Leader leader(options);
  auto const one = row(1).key;
  auto const write = [&](std::string const& body) {
    return leader.store().write(Rows{{Table::collectives, one, body}}).has_value();
  };
  REQUIRE(write("first"));
  slow.hold();
  REQUIRE(write("second"));  // the second endpoint answers; the first one has received the request before
  REQUIRE(write("third"));
  auto const late = etcd.post("/v3/kv/txn", slow.held());
  CHECK_MESSAGE(!boost::json::parse(late).as_object().contains("succeeded"), late);
  CHECK(leader.store().read().value() == Rows{{Table::collectives, one, "third"}});
  CHECK(write("fourth"));
  CHECK(leader.deposed() == 0);
}

TEST_CASE("a write of several transactions that its writer did not finish is read as a whole or not at all") {
  if (auto const why = Etcd::missing(); !why.empty()) {
    MESSAGE("skipped: " << why);
    return;
  }
  Etcd const etcd;
  auto const put = [&etcd](std::string const& key, std::string const& value) {
    etcd.post("/v3/kv/put",
              R"({"key":")" + to_base64("/chorus/a/" + key) + R"(","value":")" + to_base64(value) + "\"}");
  };
  auto const piece = [](std::string const& key, std::string const& body) {
    return R"([{"request_put":{"key":")" + to_base64("/chorus/a/rows/workers/" + key + "/0000") + R"(","value":")" +
           to_base64(body) + "\"}}]";
  };
  {
    Leader leader(etcd, "a");
    put("redo/0000", piece("w0", "1"));
    CHECK(leader.store().read().value().empty());  // the redo log was not complete
    put("redo/0000", piece("w0", "1"));
    put("redo/0001", piece("w1", "2"));
    put("redo_is_whole", "2");
    leader.resign();
  }
  Leader next(etcd, "a");
  CHECK(next.store().read().value() == Rows{{Table::workers, "w0", "1"}, {Table::workers, "w1", "2"}});
  CHECK(next.store().read().value().size() == 2);
}

TEST_CASE(
    "a write of several transactions that failed, and was begun again with more rows, is read as one of the two") {
  if (auto const why = Etcd::missing(); !why.empty()) {
    MESSAGE("skipped: " << why);
    return;
  }
  Etcd const etcd;
  SlowGateway gateway(etcd);
  constexpr int fewer = 150, more = 250;
  auto const rows = [](int count, char body) {
    Rows made;
    for (int i = 0; i < count; ++i) made.push_back({Table::collectives, row(i).key, std::string(1, body)});
    return made;
  };
  // The first write fails after it has done one of two transactions, the second one after each of its requests.
  for (int requests = 0, is_written = 0; is_written == 0; ++requests) {
    CAPTURE(requests);
    auto options = Leader::options(etcd, "a" + std::to_string(requests));
    options.endpoints = {gateway.url()};
    gateway.pass(-1);
    {
      Leader leader(options);
      REQUIRE(leader.store().read().has_value());
      gateway.pass(6);  // two pieces, the mark that they are all, what reads both, and the first transaction
      REQUIRE(leader.store().write(rows(fewer, 'a')).has_error());
      gateway.pass(requests);
      is_written = leader.store().write(rows(more, 'b')).has_value() ? 1 : 0;
      gateway.pass(-1);
      leader.resign();
    }
    Leader next(options);
    auto const found = next.store().read().value();
    CHECK((found == rows(fewer, 'a') || found == rows(more, 'b')));
    if (is_written == 1) CHECK(found == rows(more, 'b'));
  }
}

TEST_CASE("requests to etcd are counted by endpoint and result") {
  if (auto const why = Etcd::missing(); !why.empty()) {
    MESSAGE("skipped: " << why);
    return;
  }
  Etcd const etcd;
  HeldPort const nobody;
  EtcdOptions options;
  options.endpoints = {"http://127.0.0.1:" + nobody.text(), etcd.url(0)};
  auto const traffic = std::make_shared<EtcdTraffic>(options.endpoints);
  boost::asio::io_context io;
  EtcdClient client(io.get_executor(), options, traffic);
  for (int i = 0; i < 3; ++i)
    REQUIRE(http::run_to_end(
                io, client.get("/chorus/a/leader", std::chrono::steady_clock::now() + std::chrono::seconds(20)))
                .has_value());
  auto const counted = traffic->endpoints();
  REQUIRE(counted.size() == 2);
  CHECK(counted[0].url == options.endpoints[0]);
  CHECK(counted[0].unreachable == 1);  // not asked again while the other endpoint answers
  CHECK(counted[0].answered == 0);
  CHECK(counted[1].answered == 3);
  CHECK(counted[1].unreachable + counted[1].refused + counted[1].malformed == 0);
}

TEST_CASE("a URL of etcd that is listed twice is counted as one endpoint") {
  EtcdTraffic traffic({"http://a:1", "http://b:1", "http://a:1"});
  traffic.count(0, EtcdTraffic::Outcome::answered);
  traffic.count(2, EtcdTraffic::Outcome::answered);
  auto const counted = traffic.endpoints();
  REQUIRE(counted.size() == 2);
  CHECK(counted[0].answered == 2);
  CHECK(counted[1].url == "http://b:1");
}

TEST_CASE("base64 and ends of key ranges are as etcd defines them") {
  for (std::size_t size = 0; size < 10; ++size) {
    std::string const bytes = std::string(
                                  "\0\xff"
                                  "abcdefgh",
                                  10)
                                  .substr(0, size);
    CHECK(from_base64(to_base64(bytes)) == bytes);
  }
  CHECK(to_base64("foo") == "Zm9v");
  CHECK(from_base64("no base64") == "");
  CHECK(end_of_prefix("/a/") == "/a0");
}
