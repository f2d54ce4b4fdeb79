#include "worker/service/tensors/tensor_description.hpp"

#include "worker/devices/cuda/gpus.hpp"
#include "worker/service/requests/problems.hpp"
#include "worker/service/tensors/entity_tag.hpp"
#include "worker/tensors/errc.hpp"

namespace chorus::service {
namespace {

http::Problem precondition_failed(std::string_view field, std::string const& name, std::string const& found) {
  return {http::ProblemCode::precondition_failed,
          std::string(field) + " does not allow it: tensor " + name + " " + found};
}

}  // namespace

std::string tag_of(tensors::Tensor const& tensor, Identity const& identity) {
  return tensor.data->region() != nullptr ? "" : entity_tag(identity.incarnation, tensor.version);
}

std::string device_of(tensors::Tensor const& tensor) {
  auto const* const gpu = tensor.data->gpu();
  return gpu != nullptr ? devices::device_name(gpu->gpu().info().index) : "cpu";
}

void describe(tensors::Tensor const& tensor, Identity const& identity, http::Fields& fields) {
  fields.set("Tensor-Dtype", std::string(name(tensor.dtype)));
  fields.set("Tensor-Shape", tensors::to_string(tensor.shape));
  fields.set("Tensor-Version", std::to_string(tensor.version));
  fields.set("Tensor-Device", device_of(tensor));
  if (auto const tag = tag_of(tensor, identity); !tag.empty()) fields.set("ETag", tag);
  if (auto const* region = tensor.data->region()) {
    fields.set("Tensor-Shm-Region", region->name());
    fields.set("Tensor-Shm-Offset", std::to_string(tensor.data->region_offset()));
  }
  fields.set("Accept-Ranges", "bytes");
}

api::TensorInfo to_info(tensors::Tensor const& tensor) {
  api::TensorInfo info;
  info.name = tensor.name;
  info.dtype = name(tensor.dtype);
  info.shape = tensor.shape;
  info.version = tensor.version;
  info.bytes = tensor.data->size_bytes();
  info.device = device_of(tensor);
  if (auto const* region = tensor.data->region()) info.shm = api::Place{region->name(), tensor.data->region_offset()};
  return info;
}

http::Checked<std::string> tensor_name(http::Request const& request) {
  auto const& name = request.parameter("name");
  if (tensors::is_valid_name(name)) return name;
  return http::Problem(http::ProblemCode::bad_request,
                       "tensor names are 1 to 255 letters, digits and ._~/- without empty, . or .. parts");
}

std::string tensor_path(std::string_view name) {
  std::string path = "/v1/tensors/";
  for (char const c : name) c == '/' ? path += "%2F" : path += c;
  return path;
}

http::Checked<std::optional<std::uint64_t>> expected_version(http::Fields const& fields, tensors::Store const& store,
                                                             std::string const& name, Identity const& identity) {
  auto const match = find_tags(fields, "If-Match");
  if (!match) return match.error();
  auto const none_match = find_tags(fields, "If-None-Match");
  if (!none_match) return none_match.error();
  auto const tensor = store.get(name);
  if (!tensor && tensor.error().code != tensors::TensorErrc::unknown) return to_problem(tensor.error());

  std::optional<std::uint64_t> expected;
  if (*match) {
    if (!tensor) return precondition_failed("If-Match", name, "does not exist");
    if (!(*match)->matches_strongly(tag_of(*tensor, identity)))
      return precondition_failed("If-Match", name, "is at version " + std::to_string(tensor->version));
    expected = tensor->version;
  }
  if (*none_match) {
    if (tensor && (*none_match)->matches_weakly(tag_of(*tensor, identity)))
      return precondition_failed("If-None-Match", name, "is at version " + std::to_string(tensor->version));
    expected = tensor ? tensor->version : 0;
  }
  return expected;
}

http::Problem to_condition_problem(Error const& error) {
  auto problem = to_problem(error);
  if (error.code == tensors::TensorErrc::version_changed) problem.code = http::ProblemCode::precondition_failed;
  return problem;
}

}  // namespace chorus::service
