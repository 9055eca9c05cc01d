"""Configurations: typed dataclasses that are saved as JSON or TOML and validated.

``Config``       base class: ``save``, ``load``, ``with_``, nested, with defaults
``ConfigError``  error with the field, the expected and the actual value
"""

from burn.config.config import Config as Config
from burn.config.values import ConfigError as ConfigError
