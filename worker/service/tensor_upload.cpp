#include "worker/service/tensor_upload.hpp"

#include <bit>

#include "http/ascii.hpp"
#include "http/json.hpp"
#include "worker/service/digest.hpp"
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

std::optional<Problem> check_media(http::Fields const& fields) {
  if (auto const encoding = fields.find("Content-Encoding");
      encoding && !http::equals_ignoring_case(*encoding, "identity"))
    return Problem(ProblemCode::unsupported_media_type,
                   "Content-Encoding is " + shortened(*encoding) + ": send the bytes as they are");
  auto const type = fields.find("Content-Type");
  if (type && !http::equals_ignoring_case(http::trimmed(type->substr(0, type->find(';'))), media_type))
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
  router.add(http::Method::put, "/v1/tensors/{name...}",
             [this](http::Request const& request, http::Body& body) { return put(request, body); });
}

awaitable<http::Response> TensorUpload::put(http::Request const& request, http::Body& body) {
  auto const name = tensor_name(request);
  if (!name) co_return name.error();
  auto announced = check_announced(request, body.length(), tensor_limit_bytes_);
  if (!announced) co_return announced.error();
  auto const expected = expected_version(request.fields, store_, *name, identity_);
  if (!expected) co_return expected.error();
  auto const block = pool_.acquire(announced->bytes);
  if (!block) co_return to_problem(block.error());

  auto const read = co_await body.read_exactly((*block)->bytes());
  if (!read) co_return read.error();
  if (announced->digest) {
    auto const compute = [data = *block, algorithm = announced->digest->algorithm] {
      return digest(algorithm, data->bytes()).base64;
    };
    auto const found = co_await helper_.compute(compute);
    if (found != announced->digest->base64)
      co_return Problem(ProblemCode::digest_mismatch, "Content-Digest is " + to_field(*announced->digest) +
                                                          ", the body has " +
                                                          to_field({announced->digest->algorithm, found}));
  }

  bool const existed = store_.get(*name).has_value();
  auto const version = store_.put(*name, announced->dtype, announced->shape, *block, *expected);
  if (!version) co_return to_condition_problem(version.error());
  tensors::Tensor const tensor{*name, announced->dtype, std::move(announced->shape), *version, *block};
  auto response = http::Response::json(existed ? 200 : 201, http::encode(to_info(tensor)));
  describe(tensor, identity_, response.fields);
  if (!existed) response.fields.set("Location", tensor_path(*name));
  co_return response;
}

}  // namespace chorus::service
