// Trains the digits with a parameter server: four clients, each on its own part of the images, and one parameter on the
// workers. Prints accuracy against time, for one staleness.
//
// parameter_server --coordinator URL --parameter NAME --staleness N
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <exception>
#include <numeric>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

#include "examples/digits/dataset.hpp"
#include "examples/digits/network.hpp"
#include "worker/api/parameters.hpp"

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t clients = 4;
constexpr std::size_t images_per_push = 16;
constexpr std::size_t epochs = 15;

template <class T>
T must(chorus::Result<T> result) {
  if (result.has_error()) throw std::runtime_error(result.error().detail);
  return std::move(*result);
}

struct Line {
  std::size_t epoch = 0;
  double seconds = 0;  // of training, up to here
  double accuracy = 0;
};

struct Training {
  digits::Dataset dataset;
  std::string coordinator, parameter, token_file;
  int staleness = -1;
};

// One client: pulls, computes the gradient of its images, pushes. The first also sets the weights, and measures.
std::vector<Line> train(Training const& training, std::size_t client) {
  auto parameters = must(chorus::Parameters::connect({.coordinator = training.coordinator,
                                                      .client = "w" + std::to_string(client),
                                                      .incarnation = 1,
                                                      .token_file = training.token_file}));
  auto shared = must(parameters.open(training.parameter, Clock::now() + std::chrono::seconds(10)));
  auto const& images = training.dataset.training;
  auto const steps = images.size() / (clients * images_per_push);
  auto const counts = training.staleness >= 0;

  std::vector<std::size_t> order(images.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::mt19937 random(7);  // every client draws the same order, and takes its own part
  digits::Weights weights(digits::parameters), gradient(digits::parameters);
  std::vector<Line> lines;
  std::uint64_t clock = 0;
  double seconds = 0;
  for (std::size_t epoch = 1; epoch <= epochs; ++epoch) {
    for (std::size_t i = order.size() - 1; i > 0; --i) std::swap(order[i], order[random() % (i + 1)]);
    auto const start = Clock::now();
    for (std::size_t step = 0; step < steps; ++step, ++clock) {
      auto const now = counts ? std::optional(clock) : std::nullopt;
      must(shared.pull(weights, {.clock = now}));
      std::fill(gradient.begin(), gradient.end(), 0.0F);
      for (std::size_t i = 0; i < images_per_push; ++i)
        digits::accumulate_gradient(weights, images[order[(step * images_per_push + i) * clients + client]], gradient);
      for (auto& element : gradient) element /= static_cast<float>(clients * images_per_push);
      must(shared.push(gradient, {.clock = now}));
    }
    seconds += std::chrono::duration<double>(Clock::now() - start).count();
    if (client != 0) continue;
    must(shared.pull(weights));
    lines.push_back({epoch, seconds, digits::accuracy(weights, training.dataset.held_out)});
  }
  return lines;
}

void set_weights(Training const& training) {
  auto parameters = must(chorus::Parameters::connect(
      {.coordinator = training.coordinator, .client = "initial", .incarnation = 1, .token_file = training.token_file}));
  auto shared = must(parameters.open(training.parameter, Clock::now() + std::chrono::seconds(10)));
  must(shared.put(digits::initial_weights()));
}

int run(Training const& training) {
  set_weights(training);
  std::vector<Line> lines;
  std::vector<std::exception_ptr> failures(clients);
  std::vector<std::thread> threads;
  for (std::size_t client = 0; client < clients; ++client)
    threads.emplace_back([&, client] {
      try {
        auto measured = train(training, client);
        if (client == 0) lines = std::move(measured);
      } catch (...) { failures[client] = std::current_exception(); }
    });
  for (auto& thread : threads) thread.join();
  for (auto const& failure : failures)
    if (failure) std::rethrow_exception(failure);
  for (auto const& line : lines)
    if (line.epoch <= 3 || line.epoch % 5 == 0)
      std::printf("%9d  %5zu  %7.2f s  %7.2f %%\n", training.staleness, line.epoch, line.seconds, 100 * line.accuracy);
  return lines.back().accuracy >= 0.93 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) try {
  CLI::App app{"Trains a classifier on handwritten digits with a Chorus parameter server"};
  std::string data = "examples/data/digits.csv.gz";
  Training training;
  app.add_option("--data", data, "the images, gzipped CSV")->capture_default_str();
  app.add_option("--coordinator", training.coordinator, "its URL")->required();
  app.add_option("--token-file", training.token_file, "file with the token that the service asks for")
      ->envname("CHORUS_TOKEN_FILE");
  app.add_option("--parameter", training.parameter, "that holds the weights")->required();
  app.add_option("--staleness", training.staleness, "as the parameter was made with")->required();
  CLI11_PARSE(app, argc, argv);
  training.dataset = digits::load(data);
  return run(training);
} catch (std::exception const& error) {
  std::fprintf(stderr, "parameter_server: %s\n", error.what());
  return 1;
}
