"""Configurations: dataclasses that are written as JSON or TOML and read back checked.

``Config``       the base: ``save``, ``load``, ``with_``, nested and with defaults
``ConfigError``  what names the field, the expected and the actual value
"""

from burn.config.config import Config as Config
from burn.config.values import ConfigError as ConfigError
