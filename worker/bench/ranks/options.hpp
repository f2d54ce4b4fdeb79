// Options of chorus-bench.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/core/dtype.hpp"
#include "collectives/core/result.hpp"
#include "collectives/core/wire_format.hpp"
#include "collectives/model/choice/select.hpp"
#include "collectives/plan/spec.hpp"

namespace chorus::bench {

struct Options {
  std::vector<Op> ops{Op::all_reduce};
  std::vector<std::uint32_t> ranks{2};
  std::string link = "auto";
  std::string tls_certificate, tls_key;         // files, for link "tls": for 127.0.0.1, trusted by every rank
  std::vector<std::uint64_t> sizes;             // see Task::bytes
  std::vector<std::string> algorithms{"auto"};  // names, or only "all"; "auto": the model's choice
  std::optional<plan::Rank> root;
  std::optional<std::uint32_t> arity;
  std::optional<std::vector<std::uint32_t>> shape;
  Dtype dtype = Dtype::f32;
  std::optional<WireFormat> compression;      // of sums of f32
  std::optional<model::Constants> constants;  // empty: the defaults of the link
  double seconds = 1;                         // about, per size and algorithm
  std::uint32_t iterations_max = 10000;
  std::uint32_t warmup = 5;
  std::uint64_t segment_bytes = 0;     // 0: the model's, see segment_bytes_of()
  std::uint32_t window = 0;            // 0: the data plane's default
  std::uint64_t eager_bytes = 0;       // 0: the data plane's default
  bool records_flights = true;         // as workers do
  std::chrono::microseconds spin{-1};  // -1: the data plane's default
  std::uint32_t refine = 0;            // regret: runs that teach `auto` first; 0: the model's choice
  bool in_place = false;               // vectors are overwritten; for all_reduce
  std::uint32_t fused = 0;             // number of tensors of a size in one call; 0: one
  bool json = false;
  bool details = false;
  std::string device = "cpu";  // of the vectors: also "cuda", one GPU after the other, or "cuda:0"
  bool has_gpu_ipc = true;     // GPUs read each other's vectors in place
  std::string bind = "auto";   // see binds_ranks()
  bool has_checksums = false;  // frames over TCP and TLS
};

// True if the link may be shared memory.
[[nodiscard]] inline bool may_share(Options const& options) {
  return options.device == "cpu" && (options.link == "shm" || options.link == "auto");
}

// True if each rank stays on one core: "cores" does, "none" does not. "auto" does if ranks have to share cores, or if
// each has its own and they wait for each other in shared memory: two ranks that the system keeps on one core, which
// happens while another one is free, take 20 times as long.
[[nodiscard]] inline bool binds_ranks(Options const& options, std::uint32_t ranks, std::uint32_t cores) {
  if (options.bind != "auto") return options.bind == "cores";
  return ranks > cores || (ranks == cores && may_share(options));
}

// The constants by which `auto` chooses.
[[nodiscard]] model::Constants constants_of(Options const& options);

// Segment size of this many ranks on this machine.
[[nodiscard]] std::uint64_t segment_bytes_of(Options const& options, std::uint32_t ranks);

// Leaves everything to the model that the options do not fix.
[[nodiscard]] model::Wish wish_of(Options const& options, Op op, std::string algorithm);

// Lists are separated by commas. Errors of all: errc::invalid_argument with the wrong part.

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
