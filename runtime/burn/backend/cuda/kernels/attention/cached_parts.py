"""CUDA C of the sums of blocks that share the keys of a query.

A part has for each head the sum of weighted values, the largest score and the total of
the weights. The share of a part in the result is the exponential of how much less its
largest score is.
"""

SOURCE = r"""
__device__ float largest_of_warp(float most) {
    #pragma unroll
    for (int step = 16; step; step >>= 1) {
        const float v = __shfl_xor_sync(0xffffffffu, most, step);
        most = most != most || most > v ? most : v;
    }
    return most;
}
__device__ float sum_of_warp(float total) {
    #pragma unroll
    for (int step = 16; step; step >>= 1)
        total += __shfl_xor_sync(0xffffffffu, total, step);
    return total;
}
template <bool IS_GLOBAL>
__device__ float part(const float* parts, int s, int h, int d) {
    const float* at = parts + (s * HEADS + h) * STEP + d;
    return IS_GLOBAL ? __ldcg(at) : *at;
}
template <bool IS_GLOBAL> __device__ void weigh(
    const float* parts, int count, float (*shares)[SHARES], float* largest,
    float* totals
) {
    const int lane = threadIdx.x % 32;
    for (int h = threadIdx.x / 32; h < HEADS; h += WARPS) {
        float most = NONE, total = 0;
        for (int s = lane; s < count; s += 32) {
            const float v = part<IS_GLOBAL>(parts, s, h, SIZE_OF_HEAD);
            shares[h][s] = v;
            most = v != v || v > most ? v : most;
        }
        most = largest_of_warp(most);
        for (int s = lane; s < count; s += 32) {
            const float v = shares[h][s] == NONE ? 0 : expf(shares[h][s] - most);
            shares[h][s] = v;
            total += v * part<IS_GLOBAL>(parts, s, h, SIZE_OF_HEAD + 1);
        }
        total = sum_of_warp(total);
        if (lane == 0) largest[h] = most, totals[h] = total;
    }
    __syncthreads();
}
template <bool IS_GLOBAL, int COUNT> __device__ float weighted(
    const float* parts, const float (*shares)[SHARES], int i
) {
    const int h = i / SIZE_OF_HEAD;
    float whole = 0;
    #pragma unroll 16
    for (int s = 0; s < COUNT; s++)
        whole += shares[h][s] * part<IS_GLOBAL>(parts, s, h, i % SIZE_OF_HEAD);
    return whole;
}
__device__ void send(float* to, float v) {  // to the first block of the cluster
    #if CLUSTER > 1
    unsigned at = (unsigned)__cvta_generic_to_shared(to), there;
    asm("mapa.shared::cluster.u32 %0, %1, 0;" : "=r"(there) : "r"(at));
    asm volatile("st.shared::cluster.f32 [%0], %1;" :: "r"(there), "f"(v) : "memory");
    #endif
}
__device__ float sum_of_block(const float (*sums)[HEADS * SIZE_OF_HEAD], int i) {
    float whole = 0;
    #pragma unroll
    for (int w = 0; w < WARPS; w++) whole += sums[w][i];
    return whole;
}
#if CLUSTER > 1
#define IN_CLUSTERS __cluster_dims__(CLUSTER, 1, 1)
#define BARRIER(what) asm volatile("barrier.cluster." what ".aligned;" ::: "memory");
#else
#define IN_CLUSTERS
#define BARRIER(what)
#endif
"""
