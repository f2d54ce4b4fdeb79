#include "worker/bench/ranks/options.hpp"

#include <algorithm>
#include <charconv>
#include <thread>

#include "collectives/core/nearest_name.hpp"
#include "collectives/model/network.hpp"

namespace chorus::bench {
namespace {

constexpr std::uint64_t size_max = std::uint64_t{1} << 40;

Error bad(std::string_view part, std::string const& wanted) {
  return {std::make_error_code(std::errc::invalid_argument), "'" + std::string(part) + "' is not " + wanted};
}

Result<std::uint64_t> parse_size(std::string_view part) {
  auto const wrong = bad(part, "a size from 1 byte to 1T, like 4, 1K, 64M or 1G");
  std::uint64_t number = 0;
  auto const [rest, error] = std::from_chars(part.data(), part.data() + part.size(), number);
  std::string_view const unit(rest, static_cast<std::size_t>(part.data() + part.size() - rest));
  unsigned shift = 0;
  if (unit == "K")
    shift = 10;
  else if (unit == "M")
    shift = 20;
  else if (unit == "G")
    shift = 30;
  else if (!unit.empty())
    return wrong;
  if (error != std::errc() || number == 0 || number > size_max >> shift) return wrong;
  return number << shift;
}

Result<std::uint32_t> parse_number(std::string_view part, std::uint32_t least) {
  std::uint32_t number = 0;
  auto const* const end = part.data() + part.size();
  auto const [rest, error] = std::from_chars(part.data(), end, number);
  if (error != std::errc() || rest != end || number < least || number > plan::max_ranks)
    return bad(part, "a whole number from " + std::to_string(least) + " to " + std::to_string(plan::max_ranks));
  return number;
}

Result<Op> parse_one_op(std::string_view part) {
  if (auto const op = parse_op(part)) return *op;
  return Error(std::make_error_code(std::errc::invalid_argument), unknown_name("operation", part, names_of(all_ops)));
}

Result<std::string> parse_word(std::string_view part) {
  if (part.empty()) return bad(part, "the name of an algorithm");
  return std::string(part);
}

template <class Parse>
auto parse_list(std::string_view text, Parse parse) {
  using Value = std::decay_t<decltype(*parse(text))>;
  std::vector<Value> values;
  while (true) {
    auto const comma = text.find(',');
    auto const value = parse(text.substr(0, comma));
    if (value.has_error()) return Result<std::vector<Value>>(value.error());
    values.push_back(*value);
    if (comma == std::string_view::npos) return Result<std::vector<Value>>(std::move(values));
    text.remove_prefix(comma + 1);
  }
}

}  // namespace

model::Constants constants_of(Options const& options) {
  if (options.constants) return *options.constants;
  auto constants = may_share(options) ? model::Constants::shared_memory() : model::Constants::defaults();
  constants.host_cores = std::max(1U, std::thread::hardware_concurrency());
  return constants;
}

std::uint64_t segment_bytes_of(Options const& options, std::uint32_t ranks) {
  if (options.segment_bytes != 0) return options.segment_bytes;
  auto const constants = constants_of(options);
  bool const in_host_memory = options.device == "cpu";
  std::vector<Locality> const one_host(ranks);
  return in_host_memory ? model::Network(one_host, constants).segment_bytes() : constants.segment_bytes;
}

model::Wish wish_of(Options const& options, Op op, std::string algorithm) {
  model::Wish wish;
  wish.op = op;
  wish.algorithm = std::move(algorithm);
  wish.root = options.root;
  wish.arity = options.arity;
  wish.shape = options.shape;
  wish.in_place = options.in_place;
  wish.reproducible = options.compression.has_value();
  return wish;
}

Result<std::vector<std::uint64_t>> parse_sizes(std::string_view text) { return parse_list(text, parse_size); }

Result<std::vector<std::uint32_t>> parse_counts(std::string_view text) {
  return parse_list(text, [](std::string_view part) { return parse_number(part, 1); });
}

Result<std::vector<std::uint32_t>> parse_shape(std::string_view text) {
  return parse_list(text, [](std::string_view part) { return parse_number(part, 0); });
}

Result<std::vector<Op>> parse_ops(std::string_view text) {
  if (text == "all") return std::vector<Op>(all_ops.begin(), all_ops.end());
  return parse_list(text, parse_one_op);
}

Result<std::vector<std::string>> parse_algorithms(std::string_view text) { return parse_list(text, parse_word); }

std::string readable_size(std::uint64_t bytes) {
  constexpr std::string_view units[] = {"B", "KiB", "MiB", "GiB"};
  std::size_t unit = 0;
  while (unit + 1 < std::size(units) && bytes != 0 && bytes % 1024 == 0) {
    bytes /= 1024;
    ++unit;
  }
  return std::to_string(bytes) + " " + std::string(units[unit]);
}

}  // namespace chorus::bench
