"""Draws the images of a file, and prints the digit in each."""

import sys

import numpy as np

from digit_reader import read_digit

with np.load(sys.argv[1]) as data:
    images = data["images"][:3, 0]
for image in images:
    for row in image:
        print("".join(" .:-=+*#%@"[int(9 * ink)] * 2 for ink in row).rstrip())
    print("this is a", read_digit(image))
