/* An angle that follows a rate, in degrees: 0 angle, 1 its derivative, 2 rate, 3 twice the rate, 4 temperature */
#define NX 1
#define X0 0
#define D0 1
#define NZ 0
#define H 1e-2
static void start(Instance *m) { m->real[4] = 20.0; }
static void equations(Instance *m) { m->real[1] = m->real[2]; m->real[3] = 2.0 * m->real[2]; }
static void indicators(Instance *m, double *z) {}
static void event(Instance *m) {}
