#include "server/coordinator/text/duration.hpp"

#include <charconv>
#include <string>

namespace chorus::coordinator {

http::Checked<std::chrono::milliseconds> parse_duration(std::string_view text) {
  auto const refused = [text](std::string_view why) {
    return http::Problem(http::ProblemCode::bad_request,
                         "duration '" + std::string(text.substr(0, 32)) + "' " + std::string(why) +
                             "; expected a whole number of ms, s or m up to 10m, such as 500ms or 30s");
  };
  std::uint64_t count = 0;
  auto const [rest, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error == std::errc::result_out_of_range) return refused("is too long");
  if (error != std::errc()) return refused("does not begin with a number");
  auto const unit = text.substr(static_cast<std::size_t>(rest - text.data()));
  std::uint64_t const unit_ms = unit == "ms" ? 1 : unit == "s" ? 1000 : unit == "m" ? 60000 : 0;
  if (unit_ms == 0) return refused("has no unit that is known");
  if (count > static_cast<std::uint64_t>(longest_wait.count()) / unit_ms) return refused("is too long");
  return std::chrono::milliseconds(count * unit_ms);
}

}  // namespace chorus::coordinator
