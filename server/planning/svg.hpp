// Drawings without scripts, fonts or other external content.
#pragma once

#include <string>
#include <string_view>

namespace chorus::planning {

// A growing SVG document; text is escaped.
class Svg {
 public:
  // Begins a white page of this size in pixels; the title is for readers who cannot see it.
  Svg(int width, int height, std::string_view title);

  enum class Anchor : unsigned char { start, middle, end };
  void text(double x, double y, std::string_view text, Anchor anchor = Anchor::start, int size = 12,
            std::string_view fill = "#222");
  void rectangle(double x, double y, double width, double height, std::string_view fill, std::string_view title = {});
  void circle(double x, double y, double radius, std::string_view fill);
  void line(double x1, double y1, double x2, double y2, std::string_view stroke, double width);
  // Draws a line with a head at its end.
  void arrow(double x1, double y1, double x2, double y2, std::string_view stroke, double width);

  [[nodiscard]] std::string document() const { return text_ + "</svg>\n"; }

 private:
  std::string text_;
};

}  // namespace chorus::planning
