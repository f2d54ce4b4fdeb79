// The training loop, written once for one process and for many: only the exchange of the gradient differs.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "examples/digits/dataset.hpp"
#include "examples/digits/network.hpp"

namespace digits {

inline constexpr std::size_t batch = 64;  // images per step over all ranks
inline constexpr std::size_t epochs = 30;

// The gradient's elements, and one more that carries the loss along: one collective per step.
inline constexpr std::size_t exchanged_elements = parameters + 1;

struct Exchanged {
  std::string algorithm;
  double seconds = 0;
};
// Makes every rank's vector the sum over all ranks.
using Exchange = std::function<Exchanged(std::span<float> vector)>;

struct EpochReport {
  std::size_t epoch = 0;  // from 1
  double loss = 0;        // mean over the epoch's images
  double accuracy = 0;    // on the held-out images
  double step_seconds = 0;
  double exchange_seconds = 0;  // mean per step
  std::string algorithm;
};

struct Share {
  std::uint32_t rank = 0;
  std::uint32_t ranks = 1;
};

// Image i of every batch belongs to rank i mod ranks. Calls `report` after each epoch.
Weights train(Dataset const& dataset, Share share, Exchange const& exchange,
              std::function<void(EpochReport const&)> const& report);

}  // namespace digits
