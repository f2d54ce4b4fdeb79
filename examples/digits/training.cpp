#include "examples/digits/training.hpp"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <random>

namespace digits {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

Weights train(Dataset const& dataset, Share share, Exchange const& exchange,
              std::function<void(EpochReport const&)> const& report) {
  auto weights = initial_weights();
  Optimizer optimizer;
  std::vector<std::size_t> order(dataset.training.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::mt19937 random(7);  // every rank draws the same order
  std::vector<float> vector(exchanged_elements);

  for (std::size_t epoch = 1; epoch <= epochs; ++epoch) {
    for (std::size_t i = order.size() - 1; i > 0; --i) std::swap(order[i], order[random() % (i + 1)]);
    EpochReport epoch_report{.epoch = epoch};
    auto const start = std::chrono::steady_clock::now();
    std::size_t steps = 0;
    for (std::size_t first = 0; first + batch <= order.size(); first += batch, ++steps) {
      std::fill(vector.begin(), vector.end(), 0.0F);
      for (std::size_t i = share.rank; i < batch; i += share.ranks)
        vector.back() += accumulate_gradient(weights, dataset.training[order[first + i]], vector);
      auto const exchanged = exchange(vector);
      for (auto& value : vector) value /= static_cast<float>(batch);
      optimizer.step(weights, std::span(vector).first(parameters));
      epoch_report.loss += vector.back();
      epoch_report.exchange_seconds += exchanged.seconds;
      epoch_report.algorithm = exchanged.algorithm;
    }
    epoch_report.step_seconds = seconds_since(start) / static_cast<double>(steps);
    epoch_report.loss /= static_cast<double>(steps);
    epoch_report.exchange_seconds /= static_cast<double>(steps);
    epoch_report.accuracy = accuracy(weights, dataset.held_out);
    report(epoch_report);
  }
  return weights;
}

}  // namespace digits
