"""CUDA C of the products of a warp in attention, on tensor cores.

A warp has 16 rows of the query in registers. ``scores_of`` adds the products with a
tile of keys to the scores; ``add_values`` adds weights times a tile of values to the
result. Fragments have the layout that the PTX manual gives for ``mma.m16n8k16``
(float16) and ``mma.m16n8k8`` (TensorFloat-32). The source expects ``T`` and the sizes
``SIZE`` of a head and ``TILE``; it defines ``Shared``, ``DEPTH`` and ``PAD``, which
keeps rows of shared memory in different banks.
"""

HALF_PRODUCTS = r"""
#define DEPTH 16
#define PAD 8
typedef __half Shared;
__device__ void multiply(
    float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1
) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ Shared rounded(T x) { return x; }
// Two numbers next to each other as one register.
__device__ unsigned pair(float x, float y) {
    const __half2 both = __floats2half2_rn(x, y);
    return *(const unsigned*)&both;
}
__device__ unsigned pair_at(const T* x) {
    if (VECTORS) return *(const unsigned*)x;
    const __half2 both = __halves2half2(x[0], x[1]);
    return *(const unsigned*)&both;
}
__device__ void load_query(unsigned (&a)[4], const T* upper, const T* lower, int d) {
    const int at = d + 2 * (threadIdx.x % 4);
    a[0] = pair_at(upper + at), a[1] = pair_at(lower + at);
    a[2] = pair_at(upper + at + 8), a[3] = pair_at(lower + at + 8);
}
// Four matrices of 8 x 8 numbers, each row of which one thread of a warp names.
__device__ void load_matrices(unsigned (&b)[4], const Shared* row) {
    const unsigned at = (unsigned)__cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
        : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3]) : "r"(at));
}
__device__ void load_transposed(unsigned (&b)[4], const Shared* row) {
    const unsigned at = (unsigned)__cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
        : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3]) : "r"(at));
}
__device__ void scores_of(
    float (&s)[TILE / 8][4], const unsigned (&q)[SIZE / DEPTH][4],
    const Shared (&keys)[TILE][SIZE + PAD]
) {
    const int lane = threadIdx.x % 32;
    #pragma unroll
    for (int k = 0; k < SIZE / DEPTH; k++) {
        #pragma unroll
        for (int n = 0; n < TILE / 8; n += 2) {
            unsigned b[4];
            load_matrices(b, &keys[n * 8 + lane % 8 + lane / 16 * 8]
                [k * 16 + lane / 8 % 2 * 8]);
            multiply(s[n], q[k], b[0], b[1]);
            multiply(s[n + 1], q[k], b[2], b[3]);
        }
    }
}
__device__ void add_values(
    float (&out)[SIZE / 8][4], const float (&p)[TILE / 8][4],
    const Shared (&values)[TILE][SIZE + PAD]
) {
    const int lane = threadIdx.x % 32;
    #pragma unroll
    for (int k = 0; k < TILE / 16; k++) {
        const unsigned a[4] = {
            pair(p[2 * k][0], p[2 * k][1]), pair(p[2 * k][2], p[2 * k][3]),
            pair(p[2 * k + 1][0], p[2 * k + 1][1]),
            pair(p[2 * k + 1][2], p[2 * k + 1][3])};
        #pragma unroll
        for (int n = 0; n < SIZE / 8; n += 2) {
            unsigned b[4];
            load_transposed(b, &values[k * 16 + lane % 16][(n + lane / 16) * 8]);
            multiply(out[n], a, b[0], b[1]);
            multiply(out[n + 1], a, b[2], b[3]);
        }
    }
}
"""
FLOAT_PRODUCTS = r"""
#define DEPTH 8
#define PAD 4
typedef unsigned Shared;
__device__ void multiply(
    float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1
) {
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
        "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ Shared rounded(float x) {
    unsigned result;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(result) : "f"(x));
    return result;
}
__device__ void load_query(unsigned (&a)[4], const T* upper, const T* lower, int d) {
    const int at = d + threadIdx.x % 4;
    a[0] = rounded(upper[at]), a[1] = rounded(lower[at]);
    a[2] = rounded(upper[at + 4]), a[3] = rounded(lower[at + 4]);
}
__device__ void scores_of(
    float (&s)[TILE / 8][4], const unsigned (&q)[SIZE / DEPTH][4],
    const Shared (&keys)[TILE][SIZE + PAD]
) {
    const int row = threadIdx.x % 32 / 4, column = threadIdx.x % 4;
    #pragma unroll
    for (int k = 0; k < SIZE / DEPTH; k++) {
        #pragma unroll
        for (int n = 0; n < TILE / 8; n++) {
            const Shared* at = &keys[n * 8 + row][k * 8 + column];
            multiply(s[n], q[k], at[0], at[4]);
        }
    }
}
// A thread has weights of two neighboring keys, which the product takes as the keys
// `column` and `column + 4`: the order of the sum is any.
__device__ void add_values(
    float (&out)[SIZE / 8][4], const float (&p)[TILE / 8][4],
    const Shared (&values)[TILE][SIZE + PAD]
) {
    const int row = threadIdx.x % 32 / 4, column = threadIdx.x % 4;
    #pragma unroll
    for (int k = 0; k < TILE / 8; k++) {
        const unsigned a[4] = {
            rounded(p[k][0]), rounded(p[k][2]), rounded(p[k][1]), rounded(p[k][3])};
        #pragma unroll
        for (int n = 0; n < SIZE / 8; n++)
            multiply(out[n], a, values[k * 8 + 2 * column][n * 8 + row],
                values[k * 8 + 2 * column + 1][n * 8 + row]);
    }
}
"""
