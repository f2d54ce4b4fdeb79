#include "worker/bench/rank_process.hpp"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>
#include <cstring>
#include <sstream>
#include <thread>

#include "collectives/algorithms/catalogue.hpp"
#include "http/server.hpp"
#include "worker/engine/group.hpp"
#include "worker/links/handshake.hpp"

namespace chorus::bench {
namespace {

namespace asio = boost::asio;
using Clock = std::chrono::steady_clock;

engine::DataPlaneOptions plane_options(Options const& options, plan::Rank rank) {
  engine::DataPlaneOptions plane;
  plane.worker = "bench-" + std::to_string(rank);
  plane.incarnation = rank + 1;
  if (options.spin.count() >= 0) plane.spin = options.spin;
  if (options.eager_bytes != 0) plane.eager_bytes = options.eager_bytes;
  return plane;
}

// The data plane and the one route that it needs.
class Worker {
 public:
  Worker(Options const& options, plan::Rank rank) : plane_(plane_options(options, rank)) {
    router_.add(http::Method::get, links::link_path,
                [this](http::Request const& request, http::Body& body) { return link(request, body); });
    server_.emplace(io_.get_executor(), router_, http::ServerLimits{}, [](http::Exchange const&) {});
    port_ = server_->listen("127.0.0.1", 0).value();
    thread_ = std::thread([this] { io_.run(); });
  }
  ~Worker() {
    asio::co_spawn(io_, server_->stop(), asio::use_future).get();
    thread_.join();
  }
  Worker(Worker const&) = delete;
  Worker& operator=(Worker const&) = delete;

  [[nodiscard]] std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  [[nodiscard]] engine::DataPlane& plane() { return plane_; }

 private:
  asio::awaitable<http::Response> link(http::Request const& request, http::Body&) {
    auto peer = links::read_introduction(request.fields);
    if (peer.has_error()) co_return http::Problem(http::ProblemCode::bad_request, peer.error().detail);
    co_return links::switch_protocols([this, who = *peer](asio::ip::tcp::socket socket, std::string early_bytes) {
      plane_.adopt(std::move(socket), std::move(early_bytes), who.worker, who.incarnation);
    });
  }

  engine::DataPlane plane_;
  asio::io_context io_{1};
  http::Router router_;
  std::optional<http::Server> server_;
  std::uint16_t port_ = 0;
  std::thread thread_;
};

// Inputs whose sum is exact in every dtype and any order: 0 or 1. Two of them in turn, so that a result which is left
// over from the iteration before is not taken for a right one.
class Vectors {
 public:
  Vectors(std::uint64_t bytes, Dtype dtype, plan::Rank rank, std::uint32_t ranks)
      : dtype_(dtype), output_(bytes, std::byte{0xff}) {
    for (std::uint64_t turn = 0; turn < 2; ++turn) {
      inputs_[turn].resize(bytes);
      expected_[turn].resize(bytes);
      auto const elements = bytes / element_bytes(dtype);
      for (std::uint64_t i = 0; i < elements; ++i) {
        unsigned sum = 0;
        for (plan::Rank r = 0; r < ranks; ++r) sum += value(turn, r, i);
        put(inputs_[turn], i, value(turn, rank, i));
        put(expected_[turn], i, sum);
      }
    }
  }

  [[nodiscard]] std::span<std::byte const> input(std::uint64_t iteration) const { return inputs_[iteration % 2]; }
  [[nodiscard]] std::span<std::byte> output() { return output_; }
  [[nodiscard]] bool is_right(std::uint64_t iteration) const {
    auto const& expected = expected_[iteration % 2];
    return std::memcmp(output_.data(), expected.data(), expected.size()) == 0;
  }

 private:
  static unsigned value(std::uint64_t turn, plan::Rank rank, std::uint64_t i) {
    return turn == 0 ? static_cast<unsigned>(i % 7 == rank % 7) : static_cast<unsigned>(i % 7 != rank % 7);
  }
  void put(std::vector<std::byte>& bytes, std::uint64_t i, unsigned value) const {
    auto* const at = bytes.data() + i * element_bytes(dtype_);
    auto const store = [&](auto x) { std::memcpy(at, &x, sizeof x); };
    switch (dtype_) {
      case Dtype::f64:
        return store(static_cast<double>(value));
      case Dtype::f32:
        return store(static_cast<float>(value));
      case Dtype::bf16:
        return store(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(float(value)) >> 16));
      case Dtype::f16:
        return store(half(value));
      case Dtype::i64:
      case Dtype::u64:
        return store(std::uint64_t{value});
      case Dtype::i32:
      case Dtype::u32:
        return store(std::uint32_t{value});
      case Dtype::i16:
      case Dtype::u16:
        return store(static_cast<std::uint16_t>(value));
      case Dtype::i8:
      case Dtype::u8:
        return store(static_cast<std::uint8_t>(value));
    }
  }
  // Exact for the integers up to 2048.
  static std::uint16_t half(unsigned value) {
    if (value == 0) return 0;
    auto const exponent = static_cast<unsigned>(std::bit_width(value)) - 1;
    return static_cast<std::uint16_t>((exponent + 15) << 10 | ((value << (10 - exponent)) & 1023));
  }

  Dtype const dtype_;
  std::vector<std::byte> inputs_[2], expected_[2], output_;
};

class Bench {
 public:
  Bench(Options const& options, Group& group, plan::Rank rank) : options_(options), group_(group), rank_(rank) {}

  // One answer line per order. An Error ends the benchmark.
  Result<std::string> obey(std::istringstream order) {
    std::string verb;
    order >> verb;
    if (verb == "run") return warm_up(order);
    if (verb == "iterate") return iterate(order);
    return Error(std::make_error_code(std::errc::invalid_argument), "unknown order " + verb);
  }

 private:
  Result<std::string> warm_up(std::istringstream& order) {
    std::uint64_t bytes = 0;
    std::string algorithm;
    order >> bytes >> algorithm >> call_.root >> call_.arity;
    auto const found = algorithms::find(algorithm);
    if (found.has_error()) return found.error();
    call_.algorithm = *found;
    call_.timeout = std::chrono::minutes(1);
    if (options_.segment_bytes != 0) call_.segment_bytes = options_.segment_bytes;
    if (options_.window != 0) call_.window = options_.window;
    vectors_.emplace(bytes, options_.dtype, rank_, options_.ranks);
    right_ = true;
    for (std::uint32_t i = 0; i < options_.warmup; ++i)
      if (auto const seconds = call(); seconds.has_error()) return seconds.error();
    return "warm " + std::to_string(options_.warmup);
  }

  Result<std::string> iterate(std::istringstream& order) {
    std::uint64_t iterations = 0;
    order >> iterations;
    std::vector<double> times;
    times.reserve(iterations);
    for (std::uint64_t i = 0; i < iterations; ++i) {
      auto const seconds = call();
      if (seconds.has_error()) return seconds.error();
      times.push_back(*seconds);
    }
    std::ostringstream answer;
    answer.precision(9);
    answer << "times " << (right_ ? 1 : 0);
    for (auto const seconds : times) answer << ' ' << seconds;
    return answer.str();
  }

  Result<double> call() {
    auto const turn = calls_++;
    auto const begin = Clock::now();
    auto const result =
        group_.all_reduce(vectors_->input(turn), vectors_->output(), options_.dtype, ReduceOp::sum, call_);
    auto const end = Clock::now();
    if (result.status.has_error()) return result.status.error();
    right_ = right_ && vectors_->is_right(turn);
    return std::chrono::duration<double>(end - begin).count();
  }

  Options const& options_;
  Group& group_;
  plan::Rank const rank_;
  CallOptions call_;
  std::optional<Vectors> vectors_;
  std::uint64_t calls_ = 0;
  bool right_ = true;
};

}  // namespace

int run_rank(Options const& options, plan::Rank rank, LineReader orders, LineWriter answers) {
  Worker worker(options, rank);
  answers.put("url " + worker.url());
  std::istringstream peers(orders.next().value_or(""));
  std::string word;
  peers >> word;
  GroupMembership membership;
  membership.name = "bench";
  membership.rank = rank;
  for (plan::Rank r = 0; peers >> word; ++r)
    membership.members.push_back({r, "bench-" + std::to_string(r), r + 1, word});
  if (membership.members.size() != options.ranks) return 1;

  plan::Cache cache(64 << 20);
  Group group(std::move(membership), worker.plane(), cache);
  Bench bench(options, group, rank);
  while (auto const order = orders.next()) {
    if (*order == "end") return 0;
    auto const answer = bench.obey(std::istringstream(*order));
    answers.put(answer.has_value() ? *answer : "failed " + answer.error().detail);
    if (answer.has_error()) return 1;
  }
  return 1;
}

}  // namespace chorus::bench
