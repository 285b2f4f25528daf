"""Settings of a process: options, environment variables, defaults and units."""

from moorage_host.settings.parsing import SettingRow, parse_settings, setting, settings_table

__all__ = ["SettingRow", "parse_settings", "setting", "settings_table"]
