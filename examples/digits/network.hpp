// A perceptron with one hidden layer (64 pixels, 64 rectified units, 10 classes), trained by momentum SGD.
//
// Everything is a flat vector of parameters, because that is what travels: [W1 | b1 | W2 | b2].
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "examples/digits/dataset.hpp"

namespace digits {

inline constexpr std::size_t hidden = 64;
inline constexpr std::size_t parameters = pixels * hidden + hidden + hidden * classes + classes;

using Weights = std::vector<float>;  // `parameters` long

Weights initial_weights();  // the same on every rank

// Adds the gradient of the cross-entropy loss of one image to `gradient` and returns the loss.
float accumulate_gradient(Weights const& weights, Image const& image, std::span<float> gradient);

std::size_t predict(Weights const& weights, Image const& image);
double accuracy(Weights const& weights, std::span<Image const> images);

// One step of momentum SGD with the mean gradient over the whole batch.
class Optimizer {
 public:
  void step(Weights& weights, std::span<float const> mean_gradient);

 private:
  Weights velocity_ = Weights(parameters, 0.0F);
};

}  // namespace digits
