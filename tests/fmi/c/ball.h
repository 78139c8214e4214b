/* A ball that bounces: h' = v, v' = -g; at h = 0 going down, v becomes -e v. 0 h, 1 v, 2 v, 3 -g, 4 g, 5 e, 6 smallest speed */
#define NX 2
#define X0 0
#define D0 2
#define NZ 1
#define H 1e-2
static void start(Instance *m) { m->real[0] = 1.0; m->real[4] = 9.81; m->real[5] = 0.7; m->real[6] = 0.1; }
static void equations(Instance *m) { m->real[2] = m->real[1]; m->real[3] = -m->real[4]; }
static void indicators(Instance *m, double *z) { z[0] = m->real[0]; }
static void event(Instance *m) {
    if (m->real[0] > 0.0 || m->real[1] > 0.0) return;
    m->real[0] = 2.2250738585072014e-308;
    m->real[1] *= -m->real[5];
    if (m->real[1] < m->real[6]) m->real[1] = m->real[4] = 0.0;
}
