#include "server/coordinator/flag_settings.hpp"

namespace chorus::coordinator {

std::vector<api::Setting> settings_of(CLI::App const& app) {
  std::vector<api::Setting> settings;
  for (auto const* option : app.get_options()) {
    auto const name = option->get_lnames().empty() ? std::string() : option->get_lnames().front();
    if (name.empty() || name == "help" || name == "version") continue;
    api::Setting setting;
    setting.name = name;
    setting.default_value = option->get_default_str();
    setting.value = setting.default_value;
    if (option->count() > 0) {
      setting.value.clear();
      for (auto const& part : option->results()) setting.value += (setting.value.empty() ? "" : ",") + part;
    }
    setting.is_default = setting.value == setting.default_value;
    setting.help = option->get_description();
    settings.push_back(std::move(setting));
  }
  return settings;
}

}  // namespace chorus::coordinator
