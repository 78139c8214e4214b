/* A rig as a unit of co-simulation: what its generated code and data give, and what the interfaces of FMI call. */

#ifndef UNIT_H
#define UNIT_H

#include <stddef.h>
#include <stdint.h>

#ifdef _WIN32
#define EXPORTED __declspec(dllexport)
#else
#define EXPORTED __attribute__((visibility("default")))
#endif

/* the values of fmi2Status and fmi3Status */
typedef enum { OK, WARNING, DISCARD, ERROR, FATAL } Status;
typedef enum { INSTANTIATED, INITIALIZING, STEPPING, TERMINATED, FAILED } Phase;

/* --- machine code of the rig --- */

/* One tick of this number on the memory: 0, or 1 after a fault. */
int64_t cosim_tick(double *memory, int64_t number);
/* All signals of a row; start: the flat BumplessStart of the memory. */
void cosim_observe(const double *start, const double *row, double *signals);

/* --- generated data of the rig; places are indices in the memory --- */

/* A reference is p + v t, of which the memory has p at its place and v at the one of its rate; until it is set again it
   goes on at that rate. */
typedef enum { TIME, SIGNAL, MEMORY, REFERENCE, RATE } Kind;
/* place: of the signal, or in the memory; partner: the rate of a reference, the reference of a rate; only values in the
   memory can be set, from least to greatest */
typedef struct {
    Kind kind;
    size_t place, partner;
    double least, greatest;
} Variable;

extern const char *const unit_token;
extern const double unit_step; /* s */
extern const double unit_initial[];
extern const Variable unit_variables[];
extern const size_t unit_memory_size, unit_row_size, unit_early_size, unit_signal_count, unit_variable_count;
extern const size_t unit_time_place, unit_start_place, unit_fault_place, unit_guard_fault_place;
extern const size_t unit_stop_reason_place, unit_first_guard_fault_place;
/* faults of joints by code, from 0 on; above the last one those of the whole mechanism */
extern const size_t unit_joint_count, unit_joint_fault_count, unit_fault_count;
extern const char *const unit_joint_faults[]; /* (unit_joint_fault_count, unit_joint_count) */
extern const char *const unit_faults[];

/* --- an instance --- */

typedef struct Unit Unit;
enum { TEXT_SIZE = 512 }; /* of a message, with its end */
/* Hands a message to the importer. */
typedef void Report(const Unit *unit, Status status, const char *text);

struct Unit {
    Report *report;
    void (*logger)(void); /* of the importer, as the interface declares it */
    void *environment;
    char *name;
    Phase phase;
    int64_t number;       /* of the next tick */
    double start;         /* s, the importer's time of tick 0 */
    double *now, *next;   /* memory before and after the next tick */
    double *row, *signals;
    int computed, observed, faulty; /* whether next is of now, signals are of next, next has a fault */
};

/* Null, after a report, where this processor or the token does not fit. */
Unit *unit_new(Report *report, void (*logger)(void), void *environment, const char *name, const char *token);
void unit_free(Unit *unit);
void unit_reset(Unit *unit);

/* ERROR, after a report, if the function is not allowed now; phases: bits of 1 << Phase. */
Status unit_allows(Unit *unit, unsigned phases, const char *function);
Status unit_unsupported(Unit *unit, const char *function);

Status unit_get(Unit *unit, const uint32_t *references, size_t count, double *values);
Status unit_set(Unit *unit, const uint32_t *references, size_t count, const double *values);
Status unit_advance(Unit *unit, double time, double step);
double unit_time(const Unit *unit);

/* --- states of an instance, as bytes --- */

size_t unit_state_size(void);
Status unit_write_state(Unit *unit, uint8_t *bytes, size_t size);
Status unit_read_state(Unit *unit, const uint8_t *bytes, size_t size);

#endif
