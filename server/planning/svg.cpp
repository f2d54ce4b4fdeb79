#include "server/planning/svg.hpp"

#include <array>
#include <cmath>
#include <cstdio>

namespace chorus::planning {
namespace {

std::string decimal(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f", value == 0 ? 0.0 : value);
  std::string number = text.data();
  if (number.ends_with(".0")) number.resize(number.size() - 2);
  return number == "-0" ? "0" : number;
}

std::string escaped(std::string_view text) {
  std::string safe;
  for (char const c : text) {
    if (c == '<')
      safe += "&lt;";
    else if (c == '>')
      safe += "&gt;";
    else if (c == '&')
      safe += "&amp;";
    else if (c == '"')
      safe += "&quot;";
    else
      safe += c;
  }
  return safe;
}

std::string attribute(std::string_view name, std::string_view value) {
  return " " + std::string(name) + "=\"" + escaped(value) + "\"";
}
std::string attribute(std::string_view name, double value) { return attribute(name, decimal(value)); }

}  // namespace

Svg::Svg(int width, int height, std::string_view title) {
  text_ = "<svg xmlns=\"http://www.w3.org/2000/svg\"" + attribute("width", width) + attribute("height", height) +
          attribute("viewBox", "0 0 " + std::to_string(width) + " " + std::to_string(height)) +
          " role=\"img\" font-family=\"sans-serif\">\n<title>" + escaped(title) + "</title>\n";
  rectangle(0, 0, width, height, "#fff");
}

void Svg::text(double x, double y, std::string_view text, Anchor anchor, int size, std::string_view fill) {
  constexpr std::array<std::string_view, 3> anchors{"start", "middle", "end"};
  text_ += "<text" + attribute("x", x) + attribute("y", y) +
           attribute("text-anchor", anchors[static_cast<std::size_t>(anchor)]) + attribute("font-size", size) +
           attribute("fill", fill) + ">" + escaped(text) + "</text>\n";
}

void Svg::rectangle(double x, double y, double width, double height, std::string_view fill, std::string_view title) {
  text_ += "<rect" + attribute("x", x) + attribute("y", y) + attribute("width", width) + attribute("height", height) +
           attribute("fill", fill);
  text_ += title.empty() ? "/>\n" : "><title>" + escaped(title) + "</title></rect>\n";
}

void Svg::circle(double x, double y, double radius, std::string_view fill) {
  text_ +=
      "<circle" + attribute("cx", x) + attribute("cy", y) + attribute("r", radius) + attribute("fill", fill) + "/>\n";
}

void Svg::line(double x1, double y1, double x2, double y2, std::string_view stroke, double width) {
  text_ += "<line" + attribute("x1", x1) + attribute("y1", y1) + attribute("x2", x2) + attribute("y2", y2) +
           attribute("stroke", stroke) + attribute("stroke-width", width) + "/>\n";
}

void Svg::arrow(double x1, double y1, double x2, double y2, std::string_view stroke, double width) {
  auto const length = std::hypot(x2 - x1, y2 - y1);
  auto const along_x = (x2 - x1) / length, along_y = (y2 - y1) / length;
  auto const head = 5 + width, half = 2 + width * 0.6;
  auto const back_x = x2 - along_x * head, back_y = y2 - along_y * head;
  line(x1, y1, back_x, back_y, stroke, width);
  auto const point = [](double x, double y) { return decimal(x) + "," + decimal(y); };
  text_ += "<polygon" +
           attribute("points", point(x2, y2) + " " + point(back_x - along_y * half, back_y + along_x * half) + " " +
                                   point(back_x + along_y * half, back_y - along_x * half)) +
           attribute("fill", stroke) + "/>\n";
}

}  // namespace chorus::planning
