// The handwritten digits: 64 pixels scaled to 0..1 and a label per image, split into training and held-out images.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace digits {

inline constexpr std::size_t pixels = 64;
inline constexpr std::size_t classes = 10;

struct Image {
  std::array<float, pixels> pixel;
  std::uint8_t label;
};

struct Dataset {
  std::vector<Image> training;
  std::vector<Image> held_out;  // every fifth image after a shuffle with a fixed seed: the same on every rank
};

// Throws std::runtime_error naming the file and line of anything unexpected.
Dataset load(std::string const& gzip_csv);

}  // namespace digits
