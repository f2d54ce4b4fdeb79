// Options whose text is parsed by this project's own parsers; what they refuse is a usage error that says why.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/core/compression.hpp"
#include "collectives/core/nearest_name.hpp"
#include "collectives/core/result.hpp"
#include "http/api/collectives/runs.hpp"
#include "http/calibration/constants_file.hpp"
#include "server/cli/files/links_file.hpp"
#include "server/cli/text/errc.hpp"
#include "server/cli/text/units.hpp"

namespace chorus::cli {

// `target` outlives the parsing. `parse` takes a string_view and gives a Result of something `target` can be assigned.
template <class Target, class Parse>
CLI::Option* add_parsed(CLI::App& app, std::string const& name, Target& target, Parse parse, std::string const& help) {
  auto const store = [&target, parse, name](std::string const& text) {
    auto value = parse(text);
    if (!value) throw CLI::ValidationError(name, value.error().detail);
    target = std::move(*value);
  };
  return app.add_option_function<std::string>(name, store, help);
}

template <class Bytes>  // std::uint64_t, or optional
CLI::Option* add_bytes(CLI::App& app, std::string const& name, Bytes& target, std::string const& help) {
  return add_parsed(app, name, target, parse_bytes, help)->type_name("SIZE");
}

// Read when the option is parsed; `target` keeps what it had without one.
inline CLI::Option* add_constants(CLI::App& app, model::Constants& target) {
  auto const read = [](std::string_view path) { return calibration::read_constants(std::string(path)); };
  return add_parsed(app, "--constants", target, read,
                    "the cost model's constants, as `chorus bench --calibrate` prints them")
      ->type_name("FILE");
}

// Read when the option is parsed.
inline CLI::Option* add_links(CLI::App& app, std::optional<api::LinkMatrix>& target) {
  return add_parsed(app, "--links", target, read_links,
                    "the links between all pairs of ranks, which are ordered by them: "
                    "{\"bandwidth_gbyte_per_s\":[[null,50],[50,null]],\"latency_us\":[[null,0.6],[0.6,null]]}")
      ->type_name("FILE");
}

// Target is std::chrono::milliseconds or an optional of it.
template <class Target>
CLI::Option* add_duration(CLI::App& app, std::string const& name, Target& target, std::string const& help) {
  return add_parsed(app, name, target, parse_duration, help)->type_name("DURATION");
}

// Target is an unsigned integer or an optional of one, and can hold `high`.
template <class Target>
CLI::Option* add_number(CLI::App& app, std::string const& name, Target& target, std::uint32_t low, std::uint32_t high,
                        std::string const& help) {
  auto const parse = [low, high](std::string_view text) -> Result<std::uint32_t> {
    auto const number = parse_number(text, low, high);
    if (!number) return number.error();
    return static_cast<std::uint32_t>(*number);
  };
  return add_parsed(app, name, target, parse, help)->type_name("N");
}

// A list with commas; an option that is repeated adds to it. `store` takes a vector of what `parse` gives for one part.
template <class Store, class Parse>
CLI::Option* add_list(CLI::App& app, std::string const& name, Store store, Parse parse, std::string const& help) {
  auto const read = [store, parse, name](std::vector<std::string> const& lists) {
    std::vector<std::decay_t<decltype(*parse(name))>> all;
    for (auto const& text : lists) {
      auto const parts = parse_list(text, parse);
      if (!parts) throw CLI::ValidationError(name, parts.error().detail);
      all.insert(all.end(), parts->begin(), parts->end());
    }
    store(std::move(all));
  };
  return app.add_option_function<std::vector<std::string>>(name, read, help)->allow_extra_args(false);
}

// Target is a vector of Number, an unsigned integer, or an optional of one.
template <class Number, class Target>
CLI::Option* add_numbers(CLI::App& app, std::string const& name, Target& target, Number low, Number high,
                         std::string const& help) {
  auto const parse = [low, high](std::string_view text) -> Result<Number> {
    auto const number = parse_number(text, low, high);
    if (!number) return number.error();
    return static_cast<Number>(*number);
  };
  auto const store = [&target](std::vector<Number> numbers) { target = std::move(numbers); };
  return add_list(app, name, store, parse, help)->type_name("N,...");
}

template <class Target>
CLI::Option* add_names(CLI::App& app, std::string const& name, Target& target, std::string const& help) {
  auto const parse = [](std::string_view text) { return Result<std::string>(std::string(text)); };
  auto const store = [&target](std::vector<std::string> names) { target = std::move(names); };
  return add_list(app, name, store, parse, help);
}

inline CLI::Option* add_algorithm_shape(CLI::App& app, std::optional<std::vector<std::uint32_t>>& target) {
  return add_numbers<std::uint32_t>(
      app, "--algorithm-shape", target, 0, UINT32_MAX,
      "how the algorithm sees the ranks, like 2,4: rows and columns of a torus, sizes of groups");
}

// One of the names of a vocabulary (all_ops, all_dtypes, ...).
[[nodiscard]] inline CLI::Validator one_of_names(std::vector<std::string_view> names) {
  auto const check = [names](std::string const& text) -> std::string {
    if (std::find(names.begin(), names.end(), text) != names.end()) return {};
    return unknown_name("name", text, names);
  };
  return CLI::Validator(check, "");
}

template <class Vocabulary>
[[nodiscard]] CLI::Validator one_of(Vocabulary const& vocabulary) {
  return one_of_names(names_of(vocabulary));
}

// --compression FORMAT, and --between LEVEL beside it; with `chooses`, also --compression auto and its --allow.
inline void add_compression(CLI::App& app, std::optional<api::Compression>& target, bool chooses = true) {
  auto const set = [&target](auto member) {
    return [&target, member](std::string const& text) {
      if (!target) target.emplace();
      (*target).*member = text;
    };
  };
  auto formats = names_of(all_wire_formats);
  if (chooses) formats.emplace_back("auto");
  std::string const text = chooses ? "; auto: of the fastest that is allowed, or none if none pays" : "";
  auto* const format = app.add_option_function<std::string>("--compression", set(&api::Compression::format),
                                                            "send codes of this format, which lose precision" + text)
                           ->check(one_of_names(std::move(formats)))
                           ->type_name("FORMAT");
  if (chooses) {
    auto const parse = [](std::string_view name) -> Result<std::string> {
      auto const names = names_of(all_wire_formats);
      if (std::ranges::find(names, name) != names.end()) return std::string(name);
      return Error(CliErrc::bad_value, unknown_name("name", name, names));
    };
    auto const allow = [&target](std::vector<std::string> allowed) {
      if (!target) target.emplace();
      target->allow = std::move(allowed);
    };
    add_list(app, "--allow", allow, parse, "formats that --compression auto may take (default: bf16)")
        ->type_name("FORMATS")
        ->needs(format);
  }
  app.add_option_function<std::string>("--between", set(&api::Compression::between),
                                       "only between two of these, and elements inside")
      ->check(one_of(levels_between))
      ->type_name("LEVEL")
      ->needs(format);
}

}  // namespace chorus::cli
