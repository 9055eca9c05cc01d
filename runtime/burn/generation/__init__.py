"""Text generation: decoders whose caches of keys and values are written in place."""

from burn.generation.binding import BindingError as BindingError
from burn.generation.decoder import (
    CapacityError as CapacityError,
    Decoder as Decoder,
    greedy as greedy,
)
