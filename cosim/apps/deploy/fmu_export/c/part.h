/* What the generated code and data of a part give. Its memory: time, state, inputs with their derivatives (3, nu),
   parameters. */

#ifndef PART_H
#define PART_H

#include "unit.h"

/* State and outputs at the start, from time and inputs. */
void cosim_start(const double *t, const double *inputs, const double *parameters, double *state, double *outputs);
/* The state at t + h from that at t. */
void cosim_advance(const double *t, const double *h, const double *state, const double *inputs,
                   const double *parameters, double *next);
void cosim_outputs(const double *t, const double *state, const double *inputs, const double *parameters,
                   double *outputs);

extern const double unit_period, unit_longest_step; /* s; the period is 0 for a continuous part */
extern const size_t unit_part_size, unit_parameters_place;
extern const char *const unit_output_names[];

#endif
