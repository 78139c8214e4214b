/* x' = A x + B u, y = C x with n states, n inputs and n outputs: integer 0 n; 0 x, 4 x', 8 u, 12 y, 16 A, 32 B */
#define NX 4
#define X0 0
#define D0 4
#define NZ 0
#define H 1e-2
#define SPAN(m, r) ((r) >= 100 ? 1 : (r) < 16 ? (int)(m)->integer[0] : (int)((m)->integer[0] * (m)->integer[0]))
static void start(Instance *m) {
    m->integer[0] = 2;
    m->real[0] = 1.0;
    m->real[17] = 1.0, m->real[18] = -1.0;
    m->real[32] = m->real[35] = 1.0;
}
static void equations(Instance *m) {
    int n = (int)m->integer[0];
    for (int i = 0; i < n; i++) {
        m->real[4 + i] = 0.0;
        for (int j = 0; j < n; j++) m->real[4 + i] += m->real[16 + n * i + j] * m->real[j] + m->real[32 + n * i + j] * m->real[8 + j];
        m->real[12 + i] = m->real[i];
    }
}
static void indicators(Instance *m, double *z) {}
static void event(Instance *m) {}
