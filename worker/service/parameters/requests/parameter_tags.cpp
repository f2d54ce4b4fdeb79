#include "worker/service/parameters/requests/parameter_tags.hpp"

#include <algorithm>
#include <functional>

#include "worker/tensors/store.hpp"

namespace chorus::service {

std::string tag_of(std::uint32_t epoch, std::uint64_t version) {
  return std::to_string(epoch) + "." + std::to_string(version);
}

std::string joined(std::vector<std::string> const& tags) {
  auto const differs = std::ranges::adjacent_find(tags, std::not_equal_to<>()) != tags.end();
  std::string text;
  for (auto const& tag : tags)
    if (differs || text.empty()) text += (text.empty() ? "" : "-") + tag;
  return text;
}

std::vector<std::string> split_tags(TagList const& list, std::size_t shards) {
  for (auto tag : list.tags) {
    if (tag.starts_with("W/")) tag = tag.substr(2);
    tag = tag.substr(1, tag.size() - 2);
    std::vector<std::string> parts;
    for (std::size_t begin = 0; begin <= tag.size();) {
      auto const end = std::min(tag.find('-', begin), tag.size());
      parts.push_back(tag.substr(begin, end - begin));
      begin = end + 1;
    }
    if (parts.size() == 1) parts.assign(shards, parts.front());
    if (parts.size() == shards) return parts;
  }
  return {};
}

void describe_in(http::Fields& fields, Described const& what) {
  fields.set("ETag", '"' + what.tag + '"');
  fields.set("Parameter-Version", std::to_string(what.version));
  fields.set("Parameter-Epoch", std::to_string(what.epoch));
  if (what.is_unconfirmed) fields.set("Parameter-Unconfirmed", "true");
}

void describe_values(http::Fields& fields, Dtype dtype, std::vector<std::uint64_t> const& shape) {
  fields.set("Content-Type", "application/octet-stream");
  fields.set("Tensor-Dtype", std::string(name(dtype)));
  fields.set("Tensor-Shape", tensors::to_string(shape));
  fields.set("Accept-Ranges", "bytes");
}

std::vector<std::uint64_t> shape_of(parameters::ShardSpec const& spec) {
  return spec.is_whole() ? spec.shape : std::vector<std::uint64_t>{spec.elements()};
}

}  // namespace chorus::service
