// Gloo's all_reduce over its TCP transport on loopback. Flags beside those of harness.h: --ranks P, --store DIRECTORY
// (empty; where the ranks find each other) and --algorithm:
//   default           gloo::allreduce as PyTorch calls it, which takes a segmented ring
//   halving_doubling  gloo::AllreduceHalvingDoubling, which needs the input where the output shall be
#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/barrier.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bound.h"
#include "harness.h"

namespace {

using Context = std::shared_ptr<gloo::rendezvous::Context>;

Context connect(char const* store_directory, std::uint32_t rank, std::uint32_t ranks) {
  gloo::transport::tcp::attr attributes;
  attributes.iface = "lo";
  auto device = gloo::transport::tcp::CreateDevice(attributes);
  gloo::rendezvous::FileStore store(store_directory);
  auto context = std::make_shared<gloo::rendezvous::Context>(static_cast<int>(rank), static_cast<int>(ranks));
  context->connectFullMesh(store, device);
  return context;
}

class Default {
 public:
  explicit Default(Context context) : context_(std::move(context)) {}

  void prepare(vectors& vectors) {
    for (std::size_t which = 0; which < calls_.size(); ++which) {
      auto& call = calls_[which].emplace(context_);
      call.setInput(vectors.input[which], vectors.count);
      call.setOutput(vectors.output, vectors.count);
      call.setReduceFunction(static_cast<void (*)(void*, void const*, void const*, std::size_t)>(&gloo::sum<float>));
    }
  }
  void load(int) {}
  void run(int which) { gloo::allreduce(*calls_[static_cast<std::size_t>(which)]); }

 private:
  Context context_;
  std::array<std::optional<gloo::AllreduceOptions>, 2> calls_;
};

class HalvingDoubling {
 public:
  explicit HalvingDoubling(Context context) : context_(std::move(context)) {}

  void prepare(vectors& vectors) {
    vectors_ = &vectors;
    std::vector<float*> const data{vectors.output};
    algorithm_.emplace(context_, data, static_cast<int>(vectors.count));
  }
  void load(int which) { std::copy_n(vectors_->input[which], vectors_->count, vectors_->output); }
  void run(int) { algorithm_->run(); }

 private:
  Context context_;
  vectors* vectors_ = nullptr;
  std::optional<gloo::AllreduceHalvingDoubling<float>> algorithm_;
};

template <class Algorithm>
void measure(int argc, char** argv, Context const& context, std::uint32_t rank, std::uint32_t ranks) {
  Algorithm algorithm(context);
  peer measured{};
  measured.state = &algorithm;
  measured.blocks = true;
  measured.prepare = [](void* state, vectors* vectors) { static_cast<Algorithm*>(state)->prepare(*vectors); };
  measured.load = [](void* state, int which) { static_cast<Algorithm*>(state)->load(which); };
  measured.all_reduce = [](void* state, int which) { static_cast<Algorithm*>(state)->run(which); };
  measure_all(argc, argv, &measured, rank, ranks);
}

int run_rank(int argc, char** argv, std::uint32_t rank, std::uint32_t ranks) try {
  auto const context = connect(argument(argc, argv, "--store", "."), rank, ranks);
  std::string const algorithm = argument(argc, argv, "--algorithm", "default");
  if (algorithm == "default") {
    measure<Default>(argc, argv, context, rank, ranks);
  } else if (algorithm == "halving_doubling") {
    measure<HalvingDoubling>(argc, argv, context, rank, ranks);
  } else {
    std::fprintf(stderr, "no algorithm %s\n", algorithm.c_str());
    return 2;
  }
  gloo::BarrierOptions end(context);
  gloo::barrier(end);
  return 0;
} catch (std::exception const& error) {
  std::fprintf(stderr, "rank %u: %s\n", rank, error.what());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  die_with_parent();
  auto const ranks = static_cast<std::uint32_t>(number_argument(argc, argv, "--ranks", "2"));
  std::vector<pid_t> children;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    auto const child = fork();
    if (child < 0) {
      std::perror("fork");
      break;
    }
    if (child == 0) {
      die_with_parent();
      stay_on_core(argc, argv, rank, ranks);
      auto const status = run_rank(argc, argv, rank, ranks);
      std::fflush(stdout);
      _exit(status);
    }
    children.push_back(child);
  }
  bool failed = children.size() != ranks;
  for (std::size_t i = 0; i < children.size(); ++i) {
    int status = 0;
    if (failed || wait(&status) < 0 || status != 0) failed = true;
    if (failed) break;
  }
  if (failed)
    for (auto const child : children) kill(child, SIGKILL);
  return failed ? 1 : 0;
}
