#include "examples/digits/network.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <random>

namespace digits {
namespace {

constexpr float learning_rate = 0.1F;
constexpr float momentum = 0.9F;

struct Layers {
  float const *w1, *b1, *w2, *b2;
  explicit Layers(float const* flat) : w1(flat), b1(w1 + pixels * hidden), w2(b1 + hidden), b2(w2 + hidden * classes) {}
};

struct Activations {
  std::array<float, hidden> unit;
  std::array<float, classes> probability;
};

Activations forward(Weights const& weights, Image const& image) {
  Layers const layers(weights.data());
  Activations result{};
  for (std::size_t h = 0; h < hidden; ++h) {
    float sum = layers.b1[h];
    for (std::size_t i = 0; i < pixels; ++i) sum += layers.w1[h * pixels + i] * image.pixel[i];
    result.unit[h] = std::max(sum, 0.0F);
  }
  std::array<float, classes> score{};
  for (std::size_t c = 0; c < classes; ++c) {
    score[c] = layers.b2[c];
    for (std::size_t h = 0; h < hidden; ++h) score[c] += layers.w2[c * hidden + h] * result.unit[h];
  }
  auto const highest = *std::max_element(score.begin(), score.end());
  float total = 0;
  for (std::size_t c = 0; c < classes; ++c) total += result.probability[c] = std::exp(score[c] - highest);
  for (auto& probability : result.probability) probability /= total;
  return result;
}

}  // namespace

Weights initial_weights() {
  Weights weights(parameters, 0.0F);
  std::mt19937 random(1);
  auto const uniform = [&](float limit) {
    return (static_cast<float>(random() % 20001) / 10000.0F - 1.0F) * limit;  // the same on every standard library
  };
  for (std::size_t i = 0; i < pixels * hidden; ++i) weights[i] = uniform(std::sqrt(6.0F / pixels));
  auto* const w2 = weights.data() + pixels * hidden + hidden;
  for (std::size_t i = 0; i < hidden * classes; ++i) w2[i] = uniform(std::sqrt(6.0F / (hidden + classes)));
  return weights;
}

float accumulate_gradient(Weights const& weights, Image const& image, std::span<float> gradient) {
  Layers const layers(weights.data());
  auto const activations = forward(weights, image);
  auto* const w1 = gradient.data();
  auto* const b1 = w1 + pixels * hidden;
  auto* const w2 = b1 + hidden;
  auto* const b2 = w2 + hidden * classes;

  std::array<float, hidden> unit_error{};
  for (std::size_t c = 0; c < classes; ++c) {
    auto const error = activations.probability[c] - (c == image.label ? 1.0F : 0.0F);
    b2[c] += error;
    for (std::size_t h = 0; h < hidden; ++h) {
      w2[c * hidden + h] += error * activations.unit[h];
      unit_error[h] += error * layers.w2[c * hidden + h];
    }
  }
  for (std::size_t h = 0; h < hidden; ++h) {
    if (activations.unit[h] <= 0.0F) continue;
    b1[h] += unit_error[h];
    for (std::size_t i = 0; i < pixels; ++i) w1[h * pixels + i] += unit_error[h] * image.pixel[i];
  }
  return -std::log(std::max(activations.probability[image.label], 1e-12F));
}

std::size_t predict(Weights const& weights, Image const& image) {
  auto const probability = forward(weights, image).probability;
  return static_cast<std::size_t>(std::max_element(probability.begin(), probability.end()) - probability.begin());
}

double accuracy(Weights const& weights, std::span<Image const> images) {
  auto const right = std::count_if(images.begin(), images.end(),
                                   [&](auto const& image) { return predict(weights, image) == image.label; });
  return static_cast<double>(right) / static_cast<double>(images.size());
}

void Optimizer::step(Weights& weights, std::span<float const> mean_gradient) {
  for (std::size_t i = 0; i < parameters; ++i) {
    velocity_[i] = momentum * velocity_[i] - learning_rate * mean_gradient[i];
    weights[i] += velocity_[i];
  }
}

}  // namespace digits
