"""Text generation: decoders with in-place key-value caches."""

from burn.generation.binding import BindingError as BindingError
from burn.generation.decoder import (
    CapacityError as CapacityError,
    Decoder as Decoder,
    greedy as greedy,
)
