/* A torsional spring on a shaft that turns, in degrees: 0 twist, 1 its derivative, 2 speed, 3 torque, 4 stiffness */
#define NX 1
#define X0 0
#define D0 1
#define NZ 0
#define H 1e-3
static void start(Instance *m) { m->real[4] = 20.0; }
static void equations(Instance *m) {
    m->real[1] = m->real[2];
    m->real[3] = -m->real[4] * m->real[0] * 0.017453292519943295;
}
static void indicators(Instance *m, double *z) {}
static void event(Instance *m) {}
