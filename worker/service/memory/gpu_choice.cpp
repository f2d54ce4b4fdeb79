#include "worker/service/memory/gpu_choice.hpp"

#include <algorithm>
#include <charconv>

namespace chorus::service {

Result<GpuChoice> parse_gpu_choice(std::string_view text) {
  GpuChoice choice;
  choice.is_auto = text == "auto";
  if (choice.is_auto || text == "none") return choice;
  auto const refuse = [text] {
    return Error(devices::GpuErrc::unavailable,
                 "'" + std::string(text.substr(0, 40)) + "' is not auto, none, or numbers of GPUs like 0,2");
  };
  for (bool more = true; more;) {
    auto const part = text.substr(0, text.find(','));
    more = part.size() < text.size();
    text.remove_prefix(part.size() + (more ? 1 : 0));
    std::uint32_t index = 0;
    auto const [end, failure] = std::from_chars(part.data(), part.data() + part.size(), index);
    if (part.empty() || failure != std::errc() || end != part.data() + part.size()) return refuse();
    if (std::ranges::find(choice.indices, index) != choice.indices.end()) return refuse();
    choice.indices.push_back(index);
  }
  return choice;
}

Result<devices::FoundGpus> choose(GpuChoice const& choice, devices::FoundGpus found) {
  if (choice.is_auto) return found;
  devices::FoundGpus chosen;
  for (auto const index : choice.indices) {
    auto const wanted =
        std::ranges::find_if(found.gpus, [index](auto const& gpu) { return gpu->info().index == index; });
    if (wanted == found.gpus.end()) {
      std::string there;
      for (auto const& gpu : found.gpus)
        there += (there.empty() ? "there is " : ", ") + devices::device_name(gpu->info().index);
      return Error(devices::GpuErrc::unavailable, "there is no " + devices::device_name(index) + " here: " + there +
                                                      (there.empty() || found.why_none.empty() ? "" : "; ") +
                                                      found.why_none);
    }
    chosen.gpus.push_back(std::move(*wanted));
    found.gpus.erase(wanted);
  }
  if (chosen.gpus.empty()) chosen.why_none = "no GPU: the worker was told to use none (--gpus none)";
  return chosen;
}

Result<devices::FoundGpus> find_gpus(GpuChoice const& choice) {
  bool const is_none = !choice.is_auto && choice.indices.empty();
  return choose(choice, is_none ? devices::FoundGpus() : devices::find_gpus());
}

}  // namespace chorus::service
