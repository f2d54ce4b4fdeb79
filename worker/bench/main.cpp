// chorus-bench: collectives between local processes, over the data plane's public C++ interface.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <iostream>

#include "base/runtime/environment.hpp"
#include "base/usage_text.hpp"
#include "collectives/core/nearest_name.hpp"
#include "http/calibration/constants_file.hpp"
#include "metrics/build/build.hpp"
#include "worker/bench/modes/modes.hpp"
#include "worker/bench/ranks/rank_process.hpp"
#include "worker/devices/cuda/gpus.hpp"

namespace chorus::bench {
namespace {

constexpr int bad_usage = 2;

// An option that is read by one of this project's parsers; a refusal is a usage error with the reason.
template <class Target, class Parse>
CLI::Option* add_parsed(CLI::App& app, std::string const& name, Target& target, Parse parse, std::string const& help) {
  auto const store = [&target, parse, name](std::string const& text) {
    auto value = parse(text);
    if (value.has_error()) throw CLI::ValidationError(name, value.error().detail);
    target = std::move(*value);
  };
  return app.add_option_function<std::string>(name, store, help);
}

Result<Dtype> parse_element(std::string const& text) {
  if (auto const dtype = parse_dtype(text)) return *dtype;
  return Error(std::make_error_code(std::errc::invalid_argument), unknown_name("dtype", text, names_of(all_dtypes)));
}

Result<std::optional<WireFormat>> parse_compression(std::string const& text) {
  if (auto const format = parse_wire_format(text)) return format;
  return Error(std::make_error_code(std::errc::invalid_argument),
               unknown_name("format", text, names_of(all_wire_formats)));
}

std::string check_device(std::string const& text) {
  if (text == "cuda") return {};
  auto const device = devices::parse_device(text);
  return device.has_error() ? device.error().detail : "";
}

// What is wrong with the combination of options; empty if nothing is.
std::string check(Options const& options) {
  if (std::any_of(options.ranks.begin(), options.ranks.end(), [](auto ranks) { return ranks > 256; }))
    return "--ranks goes up to 256";
  for (auto const bytes : options.sizes)
    if (bytes % element_bytes(options.dtype) != 0)
      return std::to_string(bytes) + " bytes are no whole number of " + std::string(name(options.dtype)) + " elements";
  if (options.fused != 0 && (options.ops != std::vector{Op::all_reduce} || options.algorithms.size() != 1))
    return "--fused is for all_reduce, by one --algorithm";
  if (options.compression && (options.dtype != Dtype::f32 || options.device != "cpu" ||
                              !std::ranges::all_of(options.ops, [](Op op) { return reduces(op); })))
    return "--compression is for sums of f32 on --device cpu";
  if (options.in_place && options.ops != std::vector{Op::all_reduce}) return "--in-place is for all_reduce";
  if (options.in_place && options.device != "cpu") return "--in-place is for --device cpu";
  if (options.link == "tls" && (options.tls_certificate.empty() || options.tls_key.empty()))
    return "--link tls needs --tls-cert and --tls-key";
  if (options.device != "cpu" && options.link != "auto" && options.link != "tcp")
    return "--device " + options.device + " is for --link tcp or auto";
  if (options.device != "cpu" && options.fused != 0) return "--fused is for --device cpu";
  bool const one_named =
      options.algorithms.size() == 1 && options.algorithms[0] != "auto" && options.algorithms[0] != "all";
  if (options.shape && !one_named) return "--shape is for one --algorithm, by name";
  return {};
}

int run(int argc, char** argv) {
  Options options;
  options.sizes = parse_sizes("4,1K,1M,64M").value();
  std::uint32_t spin_us = 0;
  std::string gpu_ipc = "on";
  int rank_process = -1;
  bool table = false, regret = false, calibrate = false, ceiling = false, metrics = false;
  CLI::App app("Measures collectives between processes of this machine", "chorus-bench");
  app.set_version_flag("--version",
                       [&] { return metrics::version_text(metrics::this_build(), "chorus-bench", argc, argv); });
  add_parsed(app, "--op", options.ops, parse_ops, "operations, like all_reduce,broadcast; or all");
  add_parsed(app, "--ranks", options.ranks, parse_counts, "processes to start, like 4; or several numbers of them");
  app.add_option("--link", options.link, "shm, tcp, tls or auto")->check(CLI::IsMember({"shm", "tcp", "tls", "auto"}));
  app.add_option("--tls-cert", options.tls_certificate, "of --link tls: a certificate for 127.0.0.1 that signs itself")
      ->type_name("FILE");
  app.add_option("--tls-key", options.tls_key, "its key")->type_name("FILE");
  add_parsed(app, "--bytes", options.sizes, parse_sizes, "sizes, like 4,1K,1M,64M, of the larger of a rank's buffers");
  add_parsed(app, "--algorithm", options.algorithms, parse_algorithms,
             "algorithms, like ring,tree; auto, or all; several are measured in turns");
  app.add_option("--root", options.root, "of rooted operations and algorithms");
  app.add_option("--arity", options.arity, "children per node, where an algorithm wants to know; chosen if not given")
      ->check(CLI::PositiveNumber);
  add_parsed(app, "--shape", options.shape, parse_shape, "how the ranks stand to each other, like 2,4 for a torus");
  add_parsed(app, "--dtype", options.dtype, parse_element, "element type");
  add_parsed(app, "--compression", options.compression, parse_compression,
             "sums of f32 send codes: bf16, f16, int8 or fp8_e4m3");
  app.add_option("--seconds", options.seconds, "about so long per size and algorithm")->check(CLI::PositiveNumber);
  app.add_option("--iterations", options.iterations_max, "at most so many per size and algorithm")
      ->check(CLI::PositiveNumber);
  app.add_option("--warmup", options.warmup, "iterations before those that count");
  app.add_option("--segment-bytes", options.segment_bytes, "pipelining unit");
  app.add_option("--window", options.window, "segments per link that are handed over at a time");
  app.add_option("--eager-bytes", options.eager_bytes, "sent without waiting for a grant, per link and run");
  auto const* const spin = app.add_option("--spin-us", spin_us, "how long an idle data plane polls before it blocks");
  app.add_option("--fused", options.fused, "all_reduce of so many tensors of a size: a call for each, and one for all")
      ->check(CLI::Range(2, 100000));
  app.add_flag("--in-place", options.in_place, "all_reduce overwrites the vectors");
  app.add_flag("--link-checksum", options.has_checksums, "frames over tcp and tls carry checksums");
  app.add_flag("!--no-flight", options.records_flights, "without the flight recorder that workers have");
  app.add_option("--device", options.device,
                 "where vectors lie: cpu, cuda (ranks take GPUs in turn), cuda:0, cuda:1, ...")
      ->check(check_device);
  app.add_option("--gpu-ipc", gpu_ipc, "on GPUs: ranks read each other's vectors where they lie, or copy them: on, off")
      ->check(CLI::IsMember({"on", "off"}));
  app.add_option(
         "--bind", options.bind,
         "each rank stays on one of the cores: cores, none, or auto, with more ranks than cores, and over shared "
         "memory with as many")
      ->check(CLI::IsMember({"auto", "cores", "none"}));
  app.add_flag("--json", options.json, "one JSON object per line; so it is, too, where the output is no terminal");
  app.add_flag("--table", table, "a table, also where the output is no terminal")->excludes("--json");
  app.add_flag("--regret", regret, "measure all algorithms, and how much worse what auto takes is than the best");
  app.add_option("--refine", options.refine,
                 "with --regret: auto learns from so many runs first, as a coordinator does")
      ->check(CLI::Range(1, 10000));
  app.add_flag("--details", options.details, "with --regret --json: every algorithm's time, measured and predicted");
  add_parsed(app, "--constants", options.constants, calibration::read_constants,
             "file of constants by which auto chooses")
      ->type_name("FILE");
  app.add_flag("--calibrate", calibrate, "print the constants of this machine, for such a file, instead");
  app.add_flag("--metrics", metrics, "measure what it costs to count a call for GET /metrics instead");
  app.add_flag("--ceiling", ceiling, "measure the machine's TCP without Chorus instead");
  app.add_option("--rank-process", rank_process)->group("");
  app.failure_message([](CLI::App const* failed, CLI::Error const& error) {
    return http::usage_text(CLI::FailureMessage::simple(failed, error));
  });
  try {
    app.parse(argc, argv);
  } catch (CLI::ParseError const& error) { return app.exit(error) == 0 ? 0 : bad_usage; }
  options.json = options.json || (!table && isatty(STDOUT_FILENO) == 0);
  options.has_gpu_ipc = gpu_ipc == "on";
  if (*spin) options.spin = std::chrono::microseconds(spin_us);
  if (auto const wrong = check(options); !wrong.empty()) {
    std::cerr << "chorus-bench: " << wrong << "\n";
    return bad_usage;
  }

  std::signal(SIGPIPE, SIG_IGN);
  std::vector<std::string> const arguments(argv, argv + argc);
  if (rank_process >= 0) {
    auto start_line = StartLine::open(5);
    if (start_line.has_error()) return 1;
    return run_rank(options, static_cast<plan::Rank>(rank_process), LineReader(3), LineWriter(4),
                    std::move(*start_line));
  }
  if (ceiling) return run_ceiling(options);
  if (metrics) return run_metrics(options, arguments);
  if (options.fused != 0) return run_fused(options, arguments);
  if (calibrate) return run_calibrate(options, arguments);
  if (regret) return run_regret(options, arguments);
  return run_measure(options, arguments);
}

}  // namespace
}  // namespace chorus::bench

int main(int argc, char** argv) {
  chorus::http::ignore_file_size_signal();
  chorus::http::throw_on_lost_output();
  return chorus::http::run_command("chorus-bench", [argc, argv] { return chorus::bench::run(argc, argv); });
}
