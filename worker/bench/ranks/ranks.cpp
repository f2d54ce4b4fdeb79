#include "worker/bench/ranks/ranks.hpp"

#include <algorithm>
#include <sstream>

namespace chorus::bench {

Result<Ranks> Ranks::start(std::vector<std::string> const& arguments, std::uint32_t ranks) {
  auto fleet = Fleet::start(arguments, ranks);
  if (fleet.has_error()) return fleet.error();
  auto const urls = fleet->hear("url");
  if (urls.has_error()) return urls.error();
  std::string peers = "peers";
  for (auto const& url : *urls) peers += ' ' + url;
  fleet->tell(peers);
  return Ranks(std::move(*fleet), ranks);
}

Status Ranks::prepare(Task const& task) {
  fleet_.tell("prepare " + to_words(task));
  auto const answers = fleet_.hear("ready");
  return answers.has_error() ? Status(answers.error()) : ok();
}

Result<Sample> Ranks::iterate(plan::Spec const& spec, std::uint64_t iterations) {
  return iterate("iterate ", spec, iterations);
}

Result<Sample> Ranks::iterate_fused(plan::Spec const& spec, std::uint64_t iterations) {
  return iterate("iterate_fused ", spec, iterations);
}

Result<Sample> Ranks::iterate_counted(plan::Spec const& spec, std::uint64_t iterations) {
  return iterate("iterate_counted ", spec, iterations);
}

Result<Sample> Ranks::iterate(std::string const& verb, plan::Spec const& spec, std::uint64_t iterations) {
  fleet_.tell(verb + std::to_string(iterations) + ' ' + to_words(spec));
  auto const answers = fleet_.hear("times");
  if (answers.has_error()) return answers.error();
  Sample sample;
  sample.seconds.resize(iterations);
  for (auto const& line : *answers) {
    std::istringstream words(line);
    int right = 0;
    double cpu_seconds = 0;
    words >> sample.link >> right >> cpu_seconds;
    sample.correct = sample.correct && right == 1;
    sample.cpu_seconds += cpu_seconds;
    for (auto& slowest : sample.seconds) {
      double seconds = 0;
      words >> seconds;
      slowest = std::max(slowest, seconds);
    }
  }
  return sample;
}

}  // namespace chorus::bench
