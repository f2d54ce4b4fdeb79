// digits train --worker URL --group G   one rank of the data-parallel training; rank 0 prints the table
// digits compare --worker URL ...       trains in this one process, and compares with what the workers hold
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <exception>

#include "examples/digits/chorus_client.hpp"
#include "examples/digits/training.hpp"

namespace {

constexpr char const* gradient_tensor = "gradient";
constexpr char const* weights_tensor = "weights";

void print_header() {
  std::printf("%5s  %8s  %9s  %9s  %13s  %-12s %12s\n", "epoch", "loss", "held-out", "step", "all_reduce", "algorithm",
              "bandwidth");
}

void print(digits::EpochReport const& report) {
  auto const bytes = static_cast<double>(digits::exchanged_elements * sizeof(float));
  std::printf("%5zu  %8.4f  %7.2f %%  %6.2f ms  %10.2f ms  %-12s", report.epoch, report.loss, 100 * report.accuracy,
              1e3 * report.step_seconds, 1e3 * report.exchange_seconds, report.algorithm.c_str());
  if (report.exchange_seconds > 0) std::printf(" %7.1f MB/s", bytes / report.exchange_seconds / 1e6);
  std::printf("\n");
  std::fflush(stdout);
}

int train(std::string const& data, std::string const& worker, std::string const& group) {
  auto const dataset = digits::load(data);
  digits::ChorusClient client(worker);
  auto member = client.membership(group);
  auto const rank = member.rank, ranks = member.ranks;
  if (rank == 0) {
    std::printf("training on %zu images, %zu held out; %zu parameters; %u workers, batch %zu\n",
                dataset.training.size(), dataset.held_out.size(), digits::parameters, ranks, digits::batch);
    print_header();
  }
  auto const exchange = [&](std::span<float> vector) -> digits::Exchanged {
    client.put(gradient_tensor, vector);
    auto const report = client.all_reduce(group, member, gradient_tensor);
    client.get(gradient_tensor, vector);
    return {report.algorithm, report.seconds};
  };
  auto const report = [shows = rank == 0](digits::EpochReport const& epoch) {
    if (shows && (epoch.epoch <= 3 || epoch.epoch % 5 == 0)) print(epoch);
  };
  client.put(weights_tensor, digits::train(dataset, {rank, ranks}, exchange, report));
  return 0;
}

int compare(std::string const& data, std::vector<std::string> const& workers) {
  auto const dataset = digits::load(data);
  digits::EpochReport last;
  auto const alone = digits::train(
      dataset, {},
      [](std::span<float>) {
        return digits::Exchanged{"one process", 0};
      },
      [&](digits::EpochReport const& report) { last = report; });
  std::printf("\nthe same training in one process:\n");
  print_header();
  print(last);

  digits::Weights first(digits::parameters), other(digits::parameters);
  digits::ChorusClient(workers.front()).get(weights_tensor, first);
  for (auto const& worker : workers) {
    digits::ChorusClient(worker).get(weights_tensor, other);
    if (std::memcmp(first.data(), other.data(), first.size() * sizeof(float)) != 0) {
      std::printf("the weights on %s differ from those on %s\n", worker.c_str(), workers.front().c_str());
      return 1;
    }
  }
  float largest = 0;
  for (std::size_t i = 0; i < digits::parameters; ++i) largest = std::max(largest, std::abs(first[i] - alone[i]));
  auto const held_out = digits::accuracy(first, dataset.held_out);
  std::printf("\nall %zu workers hold the same weights, bit for bit\n", workers.size());
  std::printf("largest difference of a weight from the one-process training: %.2e\n", static_cast<double>(largest));
  std::printf("held-out accuracy of the workers' weights: %.2f %%\n", 100 * held_out);
  return held_out >= 0.95 && largest < 1e-2F ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) try {
  CLI::App app{"Trains a classifier on handwritten digits, data-parallel over the workers of a Chorus group"};
  std::string data = "examples/data/digits.csv.gz", worker, group = "digits";
  std::vector<std::string> workers;
  app.add_option("--data", data, "the images, gzipped CSV")->capture_default_str();
  auto* const train_command = app.add_subcommand("train", "one rank of the training");
  train_command->add_option("--worker", worker, "URL of this rank's own worker")->required();
  train_command->add_option("--group", group, "the group that trains")->capture_default_str();
  auto* const compare_command = app.add_subcommand("compare", "train in one process and compare the weights");
  compare_command->add_option("--worker", workers, "URLs of the workers")->required();
  app.require_subcommand(1);
  CLI11_PARSE(app, argc, argv);
  return train_command->parsed() ? train(data, worker, group) : compare(data, workers);
} catch (std::exception const& error) {
  std::fprintf(stderr, "digits: %s\n", error.what());
  return 1;
}
