#include "worker/service/tensors/tensor_upload.hpp"

#include <bit>

#include "base/ascii.hpp"
#include "collectives/core/nearest_name.hpp"
#include "http/json/json.hpp"
#include "worker/service/memory/prepared_memory.hpp"
#include "worker/service/requests/json_body.hpp"
#include "worker/service/requests/octets.hpp"
#include "worker/service/requests/problems.hpp"
#include "worker/service/requests/single_field.hpp"
#include "worker/service/tensors/gpu_transfer.hpp"
#include "worker/service/tensors/tensor_description.hpp"

namespace chorus::service {
namespace {

using boost::asio::awaitable;
using http::Checked;
using http::Problem;
using http::ProblemCode;

// Bodies are little-endian like the host: bytes are never swapped.
static_assert(std::endian::native == std::endian::little);

struct Announced {
  Dtype dtype = Dtype::f32;
  tensors::Shape shape;
  std::uint64_t bytes = 0;
  std::optional<Digest> digest;
};

std::string shortened(std::string_view text) { return std::string(text.substr(0, 80)); }

bool is_json(http::Fields const& fields) {
  auto const type = fields.find("Content-Type");
  return type && http::equals_ignoring_case(http::trimmed(type->substr(0, type->find(';'))), "application/json");
}

Checked<tensors::Shape> parse_shape_field(http::Fields const& fields) {
  auto const text = single_field(fields, "Tensor-Shape");
  if (!text) return text.error();
  if (!*text) return Problem(ProblemCode::bad_request, "the header field Tensor-Shape is missing (4096,1024)");
  auto shape = tensors::parse_shape(**text);
  if (!shape) return Problem(ProblemCode::bad_request, "Tensor-Shape: " + shape.error().detail);
  return std::move(*shape);
}

Checked<std::optional<Digest>> parse_content_digest(http::Fields const& fields) {
  auto const text = single_field(fields, "Content-Digest");
  if (!text) return text.error();
  if (!*text) return std::optional<Digest>();
  return parse_digest_field(**text);
}

Checked<Dtype> parse_dtype_field(http::Fields const& fields) {
  auto const text = single_field(fields, "Tensor-Dtype");
  if (!text) return text.error();
  if (!*text) return Problem(ProblemCode::bad_request, "the header field Tensor-Dtype is missing");
  if (auto const dtype = parse_dtype(**text)) return *dtype;
  return Problem(ProblemCode::bad_request, "Tensor-Dtype: " + unknown_name("dtype", **text, names_of(all_dtypes)));
}

// All checks that are possible before the body. Without `length` the body is chunked.
Checked<Announced> check_announced(http::Request const& request, std::optional<std::uint64_t> length,
                                   std::uint64_t limit_bytes) {
  auto const& fields = request.fields;
  if (auto problem = check_octets(fields)) return std::move(*problem);
  auto const dtype = parse_dtype_field(fields);
  if (!dtype) return dtype.error();
  auto shape = parse_shape_field(fields);
  if (!shape) return shape.error();
  auto const elements = tensors::element_count(*shape, *dtype);
  if (!elements) return Problem(ProblemCode::bad_request, "Tensor-Shape: " + elements.error().detail);
  auto const bytes = *elements * element_bytes(*dtype);

  if (length && !fields.find("Content-Length"))
    return Problem(ProblemCode::length_required,
                   "a tensor has a body, with Content-Length " + std::to_string(bytes) + " or in chunks");
  if (auto const most = std::max(bytes, length.value_or(0)); most > limit_bytes)
    return Problem(ProblemCode::payload_too_large, "a tensor has at most " + std::to_string(limit_bytes) +
                                                       " bytes here, this one has " + std::to_string(most));
  if (length && *length != bytes)
    return Problem(ProblemCode::length_mismatch,
                   "Content-Length is " + std::to_string(*length) + ", but " + std::string(name(*dtype)) + "[" +
                       shortened(tensors::to_string(*shape)) + "] has " + std::to_string(bytes) + " bytes");
  auto digest = parse_content_digest(fields);
  if (!digest) return digest.error();
  return Announced{*dtype, std::move(*shape), bytes, std::move(*digest)};
}

}  // namespace

void TensorUpload::add_to(http::Router& router) {
  router.add(http::Method::put, "/v1/tensors/{name...}", http::Access::submit,
             [this](http::Request const& request, http::Body& body) { return put(request, body); });
}

awaitable<http::Response> TensorUpload::put(http::Request const& request, http::Body& body) {
  auto name = tensor_name(request);
  if (!name) co_return name.error();
  if (is_json(request.fields)) co_return co_await place(request, body, std::move(*name));
  co_return co_await upload(request, body, std::move(*name));
}

// Null: host memory.
Checked<devices::GpuUnit*> TensorUpload::device(http::Fields const& fields) const {
  auto const text = single_field(fields, "Tensor-Device");
  if (!text) return text.error();
  if (!*text) return nullptr;
  auto const refuse = [](Error const& error) {
    return Problem(ProblemCode::bad_request, "Tensor-Device: " + error.detail);
  };
  auto const index = devices::parse_device(**text);
  if (!index) return refuse(index.error());
  if (!*index) return nullptr;
  auto const found = gpus_.find(**index);
  if (!found) return refuse(found.error());
  return *found;
}

struct TensorUpload::Filled {
  std::shared_ptr<tensors::Block> block;
  std::string digest;  // in base64, if wanted
};

awaitable<Checked<TensorUpload::Filled>> TensorUpload::fill(http::Body& body, std::uint64_t bytes,
                                                            devices::GpuUnit* gpu,
                                                            std::optional<DigestAlgorithm> wanted) {
  Filled filled;
  if (gpu != nullptr) {
    auto on_gpu = co_await acquire_on_gpu(*gpu, bytes, helper_);
    if (!on_gpu) co_return to_problem(on_gpu.error());
    filled.block = std::move(*on_gpu);
    auto received = co_await receive_on_gpu(body, filled.block, wanted, pool_, helper_);
    if (!received) co_return received.error();
    filled.digest = std::move(*received);
    co_return filled;
  }
  auto block = co_await receive_prepared(body, bytes, pool_, helper_);
  if (!block) co_return block.error();
  filled.block = std::move(*block);
  if (wanted) {
    auto const compute = [data = filled.block, wanted] { return digest(*wanted, data->bytes()).base64; };
    filled.digest = co_await helper_.compute(compute);
  }
  co_return filled;
}

awaitable<http::Response> TensorUpload::upload(http::Request const& request, http::Body& body, std::string name) {
  auto announced = check_announced(request, body.length(), tensor_limit_bytes_);
  if (!announced) co_return announced.error();
  auto const gpu = device(request.fields);
  if (!gpu) co_return gpu.error();
  auto const expected = expected_version(request.fields, store_, name, identity_);
  if (!expected) co_return expected.error();
  std::optional<DigestAlgorithm> wanted;
  if (announced->digest) wanted = announced->digest->algorithm;
  auto filled = co_await fill(body, announced->bytes, *gpu, wanted);
  if (!filled) co_return filled.error();
  if (auto problem = co_await body.expect_end()) co_return std::move(*problem);
  if (announced->digest && filled->digest != announced->digest->base64)
    co_return Problem(ProblemCode::digest_mismatch, "Content-Digest is " + to_field(*announced->digest) +
                                                        ", the body has " +
                                                        to_field({announced->digest->algorithm, filled->digest}));
  co_return store({std::move(name), announced->dtype, std::move(announced->shape), 0, std::move(filled->block)},
                  *expected);
}

awaitable<http::Response> TensorUpload::place(http::Request const& request, http::Body& body, std::string name) {
  if (auto const refusal = clients_.refusal()) co_return *refusal;
  auto const gpu = device(request.fields);
  if (!gpu) co_return gpu.error();
  auto asked = co_await read_json<api::Placement>(body);
  if (!asked) co_return asked.error();
  auto& placement = asked->message;
  auto const dtype = parse_dtype(placement.dtype);
  if (!dtype) co_return invalid_field("/dtype", unknown_name("dtype", placement.dtype, names_of(all_dtypes)));
  auto const elements = tensors::element_count(placement.shape, *dtype);
  if (!elements) co_return invalid_field("/shape", elements.error().detail);
  auto const bytes = *elements * element_bytes(*dtype);
  if (bytes > tensor_limit_bytes_)
    co_return invalid_field("/shape", "makes " + std::to_string(bytes) + " bytes: a tensor has at most " +
                                          std::to_string(tensor_limit_bytes_) + " here");
  auto const expected = expected_version(request.fields, store_, name, identity_);
  if (!expected) co_return expected.error();
  auto block = clients_.block(placement.shm, bytes, *dtype);
  if (!block) co_return block.error();
  if (request.fields.find("Tensor-Device") && (*block)->gpu() != *gpu)
    co_return Problem(ProblemCode::bad_request,
                      "Tensor-Device: region " + placement.shm.region + " lies elsewhere; leave the field out");
  co_return store({std::move(name), *dtype, std::move(placement.shape), 0, std::move(*block)}, *expected);
}

http::Response TensorUpload::store(tensors::Tensor tensor, std::optional<std::uint64_t> expected) {
  bool const existed = store_.get(tensor.name).has_value();
  auto const version = store_.put(tensor.name, tensor.dtype, tensor.shape, tensor.data, expected);
  if (!version) return to_condition_problem(version.error());
  tensor.version = *version;
  auto response = http::Response::json(existed ? 200 : 201, http::encode(to_info(tensor)));
  describe(tensor, identity_, response.fields);
  if (!existed) response.fields.set("Location", tensor_path(tensor.name));
  return response;
}

}  // namespace chorus::service
