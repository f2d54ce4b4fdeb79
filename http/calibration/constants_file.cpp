#include "http/calibration/constants_file.hpp"

#include <cmath>

#include "base/whole_file.hpp"
#include "http/json/json.hpp"

namespace chorus::calibration {
namespace {

Error invalid(std::string detail) { return {std::make_error_code(std::errc::invalid_argument), std::move(detail)}; }

// Applies given values, and remembers the first that is not a cost.
class Application {
 public:
  void take(double& into, std::optional<double> const& given, std::string const& name) {
    if (!given) return;
    if (wrong_.empty() && !(std::isfinite(*given) && *given >= 0)) wrong_ = name;
    into = *given;
  }
  void take(model::Constants& into, Level level, std::optional<api::LinkConstants> const& given) {
    if (!given) return;
    auto& link = into.level[static_cast<std::size_t>(level)];
    auto const where = "level." + std::string(name(level));
    take(link.alpha_s, given->alpha_s, where + ".alpha_s");
    take(link.beta_s_per_byte, given->beta_s_per_byte, where + ".beta_s_per_byte");
  }
  void take(model::Constants& into, WireFormat format, std::optional<api::FormatConstants> const& given) {
    if (!given) return;
    auto& codec = into.codec[static_cast<std::size_t>(format)];
    auto const where = "codec." + std::string(name(format));
    take(codec.encode_s_per_byte, given->encode_s_per_byte, where + ".encode_s_per_byte");
    take(codec.decode_s_per_byte, given->decode_s_per_byte, where + ".decode_s_per_byte");
    take(codec.add_s_per_byte, given->add_s_per_byte, where + ".add_s_per_byte");
  }
  void take_uplink(model::Constants& into, Level level, std::optional<double> const& given) {
    take(into.uplink_s_per_byte[static_cast<std::size_t>(level)], given,
         "uplink_s_per_byte." + std::string(name(level)));
  }
  [[nodiscard]] std::string const& wrong() const { return wrong_; }

 private:
  std::string wrong_;
};

}  // namespace

Result<model::Constants> apply(api::ModelConstants const& given, model::Constants constants) {
  Application application;
  if (given.level) {
    application.take(constants, Level::host, given.level->host);
    application.take(constants, Level::rack, given.level->rack);
    application.take(constants, Level::zone, given.level->zone);
    application.take(constants, Level::region, given.level->region);
    application.take(constants, Level::world, given.level->world);
  }
  if (given.uplink_s_per_byte) {
    application.take_uplink(constants, Level::host, given.uplink_s_per_byte->host);
    application.take_uplink(constants, Level::rack, given.uplink_s_per_byte->rack);
    application.take_uplink(constants, Level::zone, given.uplink_s_per_byte->zone);
    application.take_uplink(constants, Level::region, given.uplink_s_per_byte->region);
  }
  if (given.codec) {
    application.take(constants, WireFormat::bf16, given.codec->bf16);
    application.take(constants, WireFormat::f16, given.codec->f16);
    application.take(constants, WireFormat::int8, given.codec->int8);
    application.take(constants, WireFormat::fp8_e4m3, given.codec->fp8_e4m3);
  }
  application.take(constants.gamma_s_per_byte, given.gamma_s_per_byte, "gamma_s_per_byte");
  application.take(constants.cached_gamma_s_per_byte, given.cached_gamma_s_per_byte, "cached_gamma_s_per_byte");
  application.take(constants.host_cores, given.host_cores, "host_cores");
  application.take(constants.message_cpu_s, given.message_cpu_s, "message_cpu_s");
  application.take(constants.byte_cpu_s, given.byte_cpu_s, "byte_cpu_s");
  application.take(constants.wake_s, given.wake_s, "wake_s");
  if (!application.wrong().empty()) return invalid(application.wrong() + " is no finite number from 0 up");
  if (given.segment_bytes == 0) return invalid("segment_bytes is 0");
  constants.cache_bytes = given.cache_bytes.value_or(constants.cache_bytes);
  constants.segment_bytes = given.segment_bytes.value_or(constants.segment_bytes);
  return constants;
}

Result<model::Constants> read_constants(std::string const& path) {
  auto const text = http::content_of_file(path);
  if (!text) return Error(text.error().code, "cannot read " + text.error().detail);
  auto const given = http::decode<api::ModelConstants>(*text);
  if (!given) {
    auto detail = path + ": " + given.error().detail;
    for (auto const& error : given.error().errors) detail += "; " + error.pointer + ": " + error.detail;
    return invalid(std::move(detail));
  }
  return apply(*given, model::Constants::defaults());
}

}  // namespace chorus::calibration
