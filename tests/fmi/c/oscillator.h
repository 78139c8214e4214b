/* Van der Pol's oscillator with a force: x0' = x1, x1' = mu (1 - x0^2) x1 - x0 + u. 0 x0, 1 x1, 2, 3 derivatives, 4 mu, 5 u */
#define NX 2
#define X0 0
#define D0 2
#define NZ 0
#define H 1e-2
#define UNDEFINED(m) (fabs((m)->real[0]) > 1e3)
static void start(Instance *m) { m->real[0] = 2.0; m->real[1] = 0.0; m->real[4] = 1.0; }
static void equations(Instance *m) {
    double *r = m->real;
    r[2] = r[1];
    r[3] = r[4] * (1.0 - r[0] * r[0]) * r[1] - r[0] + r[5];
}
static void indicators(Instance *m, double *z) {}
static void event(Instance *m) {}
