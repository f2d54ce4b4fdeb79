#include "worker/service/flags.hpp"

#include <CLI/CLI.hpp>
#include <charconv>
#include <fstream>
#include <iostream>

#include "base/runtime/environment.hpp"
#include "base/usage_text.hpp"
#include "collectives/core/errc.hpp"
#include "http/client/client.hpp"
#include "http/flags/security_flags.hpp"
#include "metrics/build/build.hpp"
#include "worker/devices/cuda/pinned.hpp"
#include "worker/service/requests/identity.hpp"
#include "worker/service/surroundings.hpp"

namespace chorus::service {
namespace {

constexpr std::uint64_t fill_bytes_per_second_min = 64 << 10, fill_bytes_per_second_max = std::uint64_t{1} << 40;

// The reason for CLI11 to show, or "".
std::string check_id(std::string const& id) {
  return is_valid_worker_id(id) ? "" : "an id is 1 to 64 letters, digits and ._-, and neither . nor ..";
}

// CLI11 would clamp a number that is too large.
std::string check_bytes_of(std::string const& text, std::uint64_t least) {
  std::uint64_t bytes = 0;
  auto const [end, failure] = std::from_chars(text.data(), text.data() + text.size(), bytes);
  if (failure != std::errc() || end != text.data() + text.size()) return "'" + text + "' is not a number of bytes";
  return bytes >= least ? "" : text + " is less than " + std::to_string(least) + " bytes";
}

std::string check_bytes(std::string const& text) { return check_bytes_of(text, 0); }

// Two parts of a transfer, twice: with less, two transfers might wait for each other.
std::string check_pinned(std::string const& text) { return check_bytes_of(text, 4 * devices::PinnedPool::slot_bytes); }

std::string check_gpus(std::string const& text) {
  auto const choice = parse_gpu_choice(text);
  return choice ? "" : choice.error().detail;
}

std::string check_urls(std::string const& urls) {
  auto const parsed = http::parse_services(urls);
  return parsed ? "" : parsed.error().detail;
}

std::string check_host(std::string const& text) {
  auto const host = http::parse_listen_host(text);
  return host ? "" : host.error().detail;
}

std::string check_advertise(std::string const& text) {
  auto const url = advertised_url(text, "http", 7071);
  return url ? "" : url.error().detail;
}

std::string check_locality(std::string const& text) {
  auto const locality = parse_locality(text);
  return locality ? "" : locality.error().detail;
}

// Takes empty parts from `other`.
Locality completed(Locality locality, Locality const& other) {
  for (auto const part : {&Locality::region, &Locality::zone, &Locality::rack, &Locality::host})
    if ((locality.*part).empty()) locality.*part = other.*part;
  return locality;
}

Result<Locality> read_locality(std::string const& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return Error(PlanErrc::bad_parameter, path + " cannot be read, or is empty");
  auto locality = parse_locality(line);
  if (!locality) return Error(PlanErrc::bad_parameter, path + ": " + locality.error().detail);
  return locality;
}

}  // namespace

std::optional<Flags> parse_flags(int argc, char const* const* argv, int& exit_status) {
  http::ignore_service_links();
  Flags flags;
  auto& options = flags.options;
  options.memory = http::memory_limit();
  options.memory_limit_bytes = default_memory_limit(options.memory.bytes);
  std::string log_format = "text";
  std::uint32_t stall_ms = static_cast<std::uint32_t>(options.stall.count());
  std::string locality, fallback, file, shm = "on", link_checksum = "auto", gpus = "auto", gpu_ipc = "on";
  std::string nccl = "auto";
  auto disk_patience_ms = static_cast<std::uint32_t>(options.disk_patience.count());
  std::uint32_t spin_us = 0, drain_ms = static_cast<std::uint32_t>(options.drain_timeout.count());

  CLI::App app(
      "A Chorus worker: holds tensors and takes part in collectives. Every flag may come from the environment.");
  app.set_version_flag("--version",
                       [&] { return metrics::version_text(metrics::this_build(), "chorus-worker", argc, argv); });
  auto const flag = [&app](std::string const& name, auto& value, std::string const& help) {
    auto variable = "CHORUS_" + name.substr(2);
    for (auto& c : variable) c = c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    return app.add_option(name, value, help)->envname(variable)->capture_default_str();
  };
  flag("--host", options.host, "address to bind")->check(check_host);
  flag("--port", options.port, "port to bind; 0 picks one");
  flag("--advertise", options.advertise,
       "HOST or HOST:PORT that others use (default: --host, or the host's name; and the port that was bound)")
      ->check(check_advertise);
  flag("--coordinator", options.coordinator,
       "URL of the coordinator, or of several, with commas; without it the worker stands alone")
      ->check(check_urls);
  flag("--id", options.id, "name of this worker (default: host name and port)")->check(check_id);
  flag("--locality", locality, "region=..,zone=..,rack=..,host=..; the host defaults to the host's name")
      ->check(check_locality);
  flag("--locality-fallback", fallback, "like --locality: what its empty parts are")->check(check_locality);
  flag("--locality-file", file, "holds one line like --locality: what is empty after both")->check(CLI::ExistingFile);
  flag("--tensor-limit-bytes", options.tensor_limit_bytes, "largest tensor")->check(check_bytes);
  flag("--memory-limit-bytes", options.memory_limit_bytes,
       "all tensors and results (default: 3/4 of the memory, or of what control groups allow)")
      ->check(check_bytes);
  flag("--shm", shm, "share tensors' memory with other workers of the host")->check(CLI::IsMember({"on", "off"}));
  flag("--gpus", gpus, "which GPUs tensors may lie on: auto (all that are found), none, or numbers like 0,2")
      ->check(check_gpus);
  flag("--gpu-memory-bytes", options.gpu_limits.arena_bytes,
       "of each GPU, taken with the first tensor there (default: half of what is free then)")
      ->check(check_bytes);
  flag("--gpu-pinned-bytes", options.gpu_limits.pinned_bytes,
       "of the host's memory for each GPU, pinned: at most so much is on its way; at least 4194304")
      ->check(check_pinned);
  flag("--gpu-ipc", gpu_ipc, "let GPUs of workers on one host read each other's tensors where they lie")
      ->check(CLI::IsMember({"on", "off"}));
  flag(
      "--gpu-nccl", nccl,
      "let NCCL sum and spread several tensors of one name on GPUs; auto: where it is found and there are several GPUs")
      ->check(CLI::IsMember({"auto", "on", "off"}));
  flag("--link-checksum", link_checksum,
       "CRC32C of the frames between workers; auto: unless they go over TLS or to a loopback address")
      ->check(CLI::IsMember({"auto", "on", "off"}));
  app.add_flag("--allow-client-shm", options.allows_client_shm,
               "let clients of this host register memory (/v1/shm/system, /v1/shm/cuda) and place tensors there")
      ->envname("CHORUS_ALLOW_CLIENT_SHM");
  flag("--checkpoint-directory", options.checkpoint_directory,
       "where checkpoints of parameters are, the same for all workers (default: none are written or read)");
  flag("--log-directory", options.log_directory,
       "of this worker alone: what it has acknowledged of parameters with durability log (default: it takes none)")
      ->check(CLI::ExistingDirectory);
  flag("--log-snapshot-bytes", options.log_snapshot_bytes, "of pushes in a shard's log, before an image replaces them")
      ->check(check_bytes);
  flag(
      "--disk-patience-ms", disk_patience_ms,
      "a read, write or sync of a checkpoint or log that takes longer is given up, and said to be a disk that does not "
      "answer")
      ->check(CLI::Range(50, 3600000));
  flag("--fill-bytes-per-second", options.fill_bytes_per_second,
       "at most, while a shard of parameters moves to another worker or gets a new backup")
      ->check(CLI::Range(fill_bytes_per_second_min, fill_bytes_per_second_max));
  flag("--spin-us", spin_us, "how long the idle data thread polls before it blocks")->check(CLI::Range(0, 1000000));
  flag("--drain-ms", drain_ms, "how long a worker that is told to stop waits for what runs")
      ->check(CLI::Range(0, 3600000));
  http::add_security_flags(app, options.security);
  flag("--stall-ms", stall_ms, "a run that has not moved for so long is said to stand still")
      ->check(CLI::Range(50, 3600000));
  flag("--log-format", log_format, "lines for people, or one JSON object per line")
      ->check(CLI::IsMember({"text", "json"}));
  flag("--log-level", flags.log_level, "what is logged")
      ->check(CLI::IsMember({"trace", "debug", "info", "warn", "error", "off"}));
  app.failure_message([](CLI::App const* failed, CLI::Error const& error) {
    return http::usage_text(CLI::FailureMessage::simple(failed, error));
  });
  try {
    app.parse(argc, argv);
  } catch (CLI::ParseError const& error) {
    http::throw_on_lost_output();
    exit_status = http::run_command("chorus-worker", [&] { return app.exit(error) == 0 ? 0 : 2; });
    return std::nullopt;
  }
  options.host = http::parse_listen_host(options.host).value();
  options.stall = std::chrono::milliseconds(stall_ms);
  options.log_format = logging::parse_format(log_format).value();
  options.locality = completed(parse_locality(locality).value(), parse_locality(fallback).value());
  if (!file.empty()) {
    auto const rest = read_locality(file);
    if (!rest) {
      std::cerr << "--locality-file: " << rest.error().detail << '\n';
      exit_status = 2;
      return std::nullopt;
    }
    options.locality = completed(options.locality, *rest);
  }
  options.shares_memory = shm == "on";
  options.gpus = parse_gpu_choice(gpus).value();
  options.lends_gpu_memory = gpu_ipc == "on";
  options.nccl = nccl == "on" ? NcclUse::on : nccl == "off" ? NcclUse::off : NcclUse::automatic;
  options.link_checksum = links::parse_checksum_mode(link_checksum).value();
  options.spin = std::chrono::microseconds(spin_us);
  options.drain_timeout = std::chrono::milliseconds(drain_ms);
  options.disk_patience = std::chrono::milliseconds(disk_patience_ms);
  return flags;
}

}  // namespace chorus::service
