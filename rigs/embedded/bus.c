/* A controller and its guard beside the bus of somebody else: `bus [TICK]`. The motor here is simulated; in a program of
 * yours `motor_...` are the calls of your bus. From the tick TICK on, the motor sends no feedback any more: the guard has
 * it switched off. The result is 1 after a fault. */

#include "flywheel_vesc.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define TICKS 2000
#define WHEEL FLYWHEEL_VESC_JOINT_WHEEL
#define INERTIA 0.00125 /* kg*m^2, not quite that of the rig */
#define FRICTION 0.0006 /* N*m*s/rad */
#define MAX_EFFORT 0.9  /* N*m, of this motor, whatever it is commanded */

/* static memory is 0, which is not armed */
static double memory[FLYWHEEL_VESC_MEMORY];
static double signals[FLYWHEEL_VESC_SIGNALS];

struct sample {
    double t, position, velocity, effort; /* s and SI */
};

static struct {
    int on;
    double position, velocity, effort;
} motor;

/* One cycle of the motor, which runs by itself without a command. */
static void motor_turn(void)
{
    const int parts = 20;
    for (int k = 0; k < parts; k++) {
        double effort = motor.on ? motor.effort : 0.0;
        motor.velocity += (effort - FRICTION * motor.velocity) / INERTIA * FLYWHEEL_VESC_STEP / parts;
        motor.position += motor.velocity * FLYWHEEL_VESC_STEP / parts;
    }
}

static void motor_send(double effort)
{
    motor.effort = isfinite(effort) ? fmin(fmax(effort, -MAX_EFFORT), MAX_EFFORT) : 0.0;
}

static void motor_off(void)
{
    motor.on = 0;
    motor.effort = 0.0;
}

/* What the last sample says, at the places where `read` looks for it. now: s. */
static void store(const struct sample *last, const struct sample *before, double now)
{
    memory[FLYWHEEL_VESC_AT_MEASURED_POSITION + WHEEL] = last->position;
    memory[FLYWHEEL_VESC_AT_MEASURED_VELOCITY + WHEEL] = last->velocity;
    memory[FLYWHEEL_VESC_AT_MEASURED_EFFORT + WHEEL] = last->effort;
    memory[FLYWHEEL_VESC_AT_TEMPERATURE + WHEEL] = NAN; /* is not measured */
    memory[FLYWHEEL_VESC_AT_SAMPLE_INTERVAL + WHEEL] = last->t - before->t; /* 0: there is no new sample */
    memory[FLYWHEEL_VESC_AT_SAMPLE_DELAY + WHEEL] = now - last->t;
    memory[FLYWHEEL_VESC_AT_AGE + WHEEL] = now - last->t;
}

int main(int count, char **words)
{
    long silent = count > 1 ? strtol(words[1], NULL, 10) : TICKS;
    struct sample last = {-FLYWHEEL_VESC_STEP, 0.0, 0.0, 0.0}, before = last;
    double largest = 0.0;
    int32_t fault;
    int64_t tick;

    flywheel_vesc_reset(memory);
    store(&last, &before, 0.0);
    fault = flywheel_vesc_arm(memory, 0);
    motor.on = fault == 0;
    for (tick = 0; fault == 0 && tick < TICKS; tick++) {
        /* here your program waits for the time of the tick */
        double now = (double)tick * FLYWHEEL_VESC_STEP;
        before = last;
        if (tick < silent)
            last = (struct sample){now, motor.position, motor.velocity, motor.effort};
        store(&last, &before, now);

        flywheel_vesc_read(memory, tick);
        flywheel_vesc_controller_feedforward_pd(memory, tick);
        fault = flywheel_vesc_guard(memory);
        flywheel_vesc_write(memory);
        motor_send(memory[FLYWHEEL_VESC_AT_REQUEST + WHEEL]); /* 0 after a fault */
        if (fault != 0)
            motor_off();
        flywheel_vesc_step(memory);

        motor_turn();
        flywheel_vesc_signals(memory, signals);
        largest = fmax(largest, fabs(signals[FLYWHEEL_VESC_SIGNAL_WHEEL_REFERENCE_POSITION]
                                     - signals[FLYWHEEL_VESC_SIGNAL_WHEEL_MEASURED_POSITION]));
    }
    motor_off();
    if (fault != 0) {
        printf("motor off at tick %ld: fault %d%s\n", (long)tick - 1, (int)fault,
               fault == FLYWHEEL_VESC_FAULT_STALE ? ", feedback is older than guard.stale" : "");
        return 1;
    }
    printf("%ld ticks, largest tracking error %.4f rad\n", (long)tick, largest);
    return 0;
}
