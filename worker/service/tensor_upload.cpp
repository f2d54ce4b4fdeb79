#include "worker/service/tensor_upload.hpp"

#include <bit>

#include "http/ascii.hpp"
#include "http/json.hpp"
#include "worker/service/gpu_transfer.hpp"
#include "worker/service/json_body.hpp"
#include "worker/service/problems.hpp"
#include "worker/service/single_field.hpp"
#include "worker/service/tensor_description.hpp"

namespace chorus::service {
namespace {

using boost::asio::awaitable;
using http::Checked;
using http::Problem;
using http::ProblemCode;

// Bodies are little-endian, and so are we: bytes are never swapped.
static_assert(std::endian::native == std::endian::little);

constexpr std::string_view media_type = "application/octet-stream";

struct Announced {
  Dtype dtype = Dtype::f32;
  tensors::Shape shape;
  std::uint64_t bytes = 0;
  std::optional<Digest> digest;
};

std::string shortened(std::string_view text) { return std::string(text.substr(0, 80)); }

std::string_view media_type_of(std::string_view content_type) {
  return http::trimmed(content_type.substr(0, content_type.find(';')));
}

bool is_json(http::Fields const& fields) {
  auto const type = fields.find("Content-Type");
  return type && http::equals_ignoring_case(media_type_of(*type), "application/json");
}

std::optional<Problem> check_media(http::Fields const& fields) {
  if (auto const encoding = fields.find("Content-Encoding");
      encoding && !http::equals_ignoring_case(*encoding, "identity"))
    return Problem(ProblemCode::unsupported_media_type,
                   "Content-Encoding is " + shortened(*encoding) + ": send the bytes as they are");
  auto const type = fields.find("Content-Type");
  if (type && !http::equals_ignoring_case(media_type_of(*type), media_type))
    return Problem(ProblemCode::unsupported_media_type,
                   "Content-Type is " + shortened(*type) +
                       ", expected application/octet-stream or none (with curl: -T FILE, "
                       "or -H 'Content-Type: application/octet-stream')");
  return std::nullopt;
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
  std::string names;
  for (auto const dtype : all_dtypes) names += (names.empty() ? "" : ", ") + std::string(name(dtype));
  return Problem(ProblemCode::bad_request, "Tensor-Dtype is " + shortened(**text) + ", expected one of " + names);
}

// Everything that can be known before a byte of the body is read.
Checked<Announced> check_announced(http::Request const& request, std::optional<std::uint64_t> length,
                                   std::uint64_t limit_bytes) {
  auto const& fields = request.fields;
  if (auto problem = check_media(fields)) return std::move(*problem);
  auto const dtype = parse_dtype_field(fields);
  if (!dtype) return dtype.error();
  auto shape = parse_shape_field(fields);
  if (!shape) return shape.error();
  auto const elements = tensors::element_count(*shape, *dtype);
  if (!elements) return Problem(ProblemCode::bad_request, "Tensor-Shape: " + elements.error().detail);
  auto const bytes = *elements * element_bytes(*dtype);

  if (!length || !fields.find("Content-Length"))
    return Problem(ProblemCode::length_required, "a tensor is sent with Content-Length, here " + std::to_string(bytes));
  if (bytes > limit_bytes || *length > limit_bytes)
    return Problem(ProblemCode::payload_too_large, "a tensor has at most " + std::to_string(limit_bytes) +
                                                       " bytes here, this one has " +
                                                       std::to_string(std::max(bytes, *length)));
  if (*length != bytes)
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

// Null: the host's memory.
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
  std::string digest;  // in base64, if one was wanted
};

awaitable<Checked<TensorUpload::Filled>> TensorUpload::fill(http::Body& body, std::uint64_t bytes,
                                                            devices::GpuUnit* gpu,
                                                            std::optional<DigestAlgorithm> wanted) {
  Filled filled;
  if (gpu != nullptr) {
    auto on_gpu = co_await acquire_on_gpu(*gpu, bytes, helper_);
    if (!on_gpu) co_return on_gpu.error();
    filled.block = std::move(*on_gpu);
    auto received = co_await receive_on_gpu(body, filled.block, wanted, pool_, helper_);
    if (!received) co_return received.error();
    filled.digest = std::move(*received);
    co_return filled;
  }
  auto block = pool_.acquire(bytes);
  if (!block) co_return to_problem(block.error());
  filled.block = std::move(*block);
  auto const read = co_await body.read_exactly(filled.block->bytes());
  if (!read) co_return read.error();
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
  if (!dtype) co_return invalid_field("/dtype", "is " + shortened(placement.dtype) + ", which is no dtype");
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
