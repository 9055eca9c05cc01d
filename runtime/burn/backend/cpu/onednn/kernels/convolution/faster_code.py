"""oneDNN implementations that are faster than those that the library prefers.

Without AVX-512 the library prefers its newer code for products of matrices. Measured
on an AMD EPYC with AVX2 and one thread, its older code takes 0.61 to 1.00 of the time
for 27 pointwise convolutions, and 0.5 to 1.0 for 70 depthwise ones. The exceptions are
depthwise images beyond 3 MB with windows of 3 x 3: 0.6 to 1.4.
"""

#: The replacement of an implementation, where the library has both.
FASTER = {
    "brgconv_1x1:avx2": "jit_1x1:avx2",
    "brdgmm_dw:avx2": "jit_dw:avx2",
}
