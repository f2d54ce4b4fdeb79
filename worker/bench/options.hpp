// What chorus-bench is asked to measure.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/core/dtype.hpp"
#include "collectives/core/result.hpp"
#include "collectives/model/select.hpp"
#include "collectives/plan/spec.hpp"

namespace chorus::bench {

struct Options {
  std::vector<Op> ops{Op::all_reduce};
  std::vector<std::uint32_t> ranks{2};
  std::string link = "auto";
  std::string tls_certificate, tls_key;         // files, of link "tls": for 127.0.0.1, and every rank believes it
  std::vector<std::uint64_t> sizes;             // see Task::bytes
  std::vector<std::string> algorithms{"auto"};  // names, or only "all"; "auto": what the model takes
  std::optional<plan::Rank> root;
  std::optional<std::uint32_t> arity;
  std::optional<std::vector<std::uint32_t>> shape;
  Dtype dtype = Dtype::f32;
  std::optional<model::Constants> constants;  // not given: the defaults of the link
  double seconds = 1;                         // about, per size and algorithm
  std::uint32_t iterations_max = 10000;
  std::uint32_t warmup = 5;
  std::uint64_t segment_bytes = 0;     // 0: the model's, see segment_bytes_of()
  std::uint32_t window = 0;            // 0: the data plane's default
  std::uint64_t eager_bytes = 0;       // likewise
  bool records_flights = true;         // as workers do
  std::chrono::microseconds spin{-1};  // -1: likewise
  std::uint32_t refine = 0;            // regret: so many runs teach `auto` before; 0: it takes what the model says
  bool in_place = false;               // vectors are overwritten; of all_reduce
  std::uint32_t fused = 0;             // so many tensors of a size in one call; 0: one
  bool json = false;
  bool details = false;
  std::string device = "cpu";  // where vectors lie: also "cuda", one GPU after the other, or "cuda:0"
  bool has_gpu_ipc = true;     // GPUs read each other's vectors where they lie
  std::string bind = "auto";   // see binds_ranks()
  bool has_checksums = false;  // frames over TCP and TLS
};

// The link may be shared memory.
[[nodiscard]] inline bool may_share(Options const& options) {
  return options.device == "cpu" && (options.link == "shm" || options.link == "auto");
}

// Whether each rank stays on one core: "cores" does, "none" does not, and "auto" where ranks have to share cores, or
// where there is one for each and they wait for each other in shared memory: two that the system keeps on one core, as
// it does at times while another is free, take 20 times as long.
[[nodiscard]] inline bool binds_ranks(Options const& options, std::uint32_t ranks, std::uint32_t cores) {
  if (options.bind != "auto") return options.bind == "cores";
  return ranks > cores || (ranks == cores && may_share(options));
}

// What `auto` chooses by.
[[nodiscard]] model::Constants constants_of(Options const& options);

// Into which so many ranks of this machine cut what they send.
[[nodiscard]] std::uint64_t segment_bytes_of(Options const& options, std::uint32_t ranks);

// What is left open is chosen.
[[nodiscard]] model::Wish wish_of(Options const& options, Op op, std::string algorithm);

// Lists are separated by commas. Errors of all: std::errc::invalid_argument with the part that is wrong.

// "4,1K,1M,64M": K, M and G are powers of 1024.
[[nodiscard]] Result<std::vector<std::uint64_t>> parse_sizes(std::string_view text);
// "2,3,8": from 1 to 65536 each.
[[nodiscard]] Result<std::vector<std::uint32_t>> parse_counts(std::string_view text);
// "2,4": from 0 to 65536 each, as a parent in a tree may be rank 0.
[[nodiscard]] Result<std::vector<std::uint32_t>> parse_shape(std::string_view text);
// "all_reduce,broadcast", or "all".
[[nodiscard]] Result<std::vector<Op>> parse_ops(std::string_view text);
// "ring,tree". Names are not looked up.
[[nodiscard]] Result<std::vector<std::string>> parse_algorithms(std::string_view text);

// "64 MiB"
[[nodiscard]] std::string readable_size(std::uint64_t bytes);

}  // namespace chorus::bench
