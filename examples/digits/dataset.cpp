#include "examples/digits/dataset.hpp"

#include <zlib.h>

#include <charconv>
#include <random>
#include <stdexcept>
#include <utility>

namespace digits {
namespace {

Image parse(std::string_view line, std::string const& where) {
  Image image{};
  for (std::size_t column = 0; column <= pixels; ++column) {
    auto const cell = line.substr(0, line.find(','));
    line.remove_prefix(cell.size() == line.size() ? cell.size() : cell.size() + 1);
    unsigned value = 0;
    auto const [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
    if (error != std::errc{} || end != cell.data() + cell.size() || value > 16)
      throw std::runtime_error(where + ": column " + std::to_string(column + 1) + " is '" + std::string(cell) + "'");
    if (column < pixels)
      image.pixel[column] = static_cast<float>(value) / 16.0F;
    else
      image.label = static_cast<std::uint8_t>(value);
  }
  return image;
}

}  // namespace

Dataset load(std::string const& gzip_csv) {
  auto* const file = gzopen(gzip_csv.c_str(), "rb");
  if (file == nullptr) throw std::runtime_error("cannot open " + gzip_csv);
  std::vector<Image> images;
  std::array<char, 1024> buffer{};
  while (gzgets(file, buffer.data(), static_cast<int>(buffer.size())) != nullptr) {
    std::string_view line(buffer.data());
    while (line.ends_with('\n') || line.ends_with('\r')) line.remove_suffix(1);
    images.push_back(parse(line, gzip_csv + ":" + std::to_string(images.size() + 1)));
  }
  gzclose(file);
  if (images.empty()) throw std::runtime_error(gzip_csv + " holds no images");

  std::mt19937 random(20240229);
  for (std::size_t i = images.size() - 1; i > 0; --i) std::swap(images[i], images[random() % (i + 1)]);
  Dataset dataset;
  for (std::size_t i = 0; i < images.size(); ++i)
    (i % 5 == 0 ? dataset.held_out : dataset.training).push_back(images[i]);
  return dataset;
}

}  // namespace digits
