"""LLVM IR of the clocks: reading a clock, sleeping to a time, waiting for an external trigger.

`i64 @cosim.now()`, `i64 @cosim.cpu()`; `i64 @cosim.sleep(due, context)` and `i64 @cosim.trigger(due, context)` wait and
return the time [ns] or NO_TRIGGER; `void @cosim.latencies(first, period, count, context, latencies)`.
"""

from __future__ import annotations

NO_TRIGGER = -1  # what a wait returns instead of a time
SPIN, INTERRUPT, FILE, TIMEOUT, SIZE = range(5)  # places in the context of a wait
POLL_NS = 50_000_000  # ns, longest time between two looks at INTERRUPT

MONOTONIC, THREAD_CPU, ABSOLUTE = 1, 3, 1  # of <time.h>
INTERRUPTED = 4  # EINTR
SYMBOLS = tuple(f"cosim.{name}" for name in ("now", "cpu", "sleep", "trigger", "latencies"))


def _clock_read(name: str, clock: int) -> str:
    return f"""
define i64 @cosim.{name}() nounwind {{
  %time = alloca [2 x i64], align 8
  %rc = call i32 @clock_gettime(i32 {clock}, ptr %time)
  %s = load i64, ptr %time
  %rest = getelementptr inbounds i64, ptr %time, i64 1
  %ns = load i64, ptr %rest
  %whole = mul i64 %s, 1000000000
  %sum = add i64 %whole, %ns
  ret i64 %sum
}}
"""


CODE = (
    """
declare i32 @clock_nanosleep(i32, i32, ptr, ptr)
declare i32 @clock_gettime(i32, ptr)
declare i32 @poll(ptr, i64, i32)
declare i64 @read(i32, ptr, i64)
"""
    + _clock_read("now", MONOTONIC)
    + _clock_read("cpu", THREAD_CPU)
    + f"""
define i64 @cosim.sleep(i64 %due, ptr %context) nounwind {{
entry:
  %time = alloca [2 x i64], align 8
  %rest = getelementptr inbounds i64, ptr %time, i64 1
  %interrupt.place = getelementptr inbounds i64, ptr %context, i64 {INTERRUPT}
  %spin = load i64, ptr %context
  %until = sub i64 %due, %spin
  br label %again
again:
  %begun = call i64 @cosim.now()
  %soon = add i64 %begun, {POLL_NS}
  %last = icmp sle i64 %until, %soon
  %to = select i1 %last, i64 %until, i64 %soon
  %s = sdiv i64 %to, 1000000000
  %ns = srem i64 %to, 1000000000
  store i64 %s, ptr %time
  store i64 %ns, ptr %rest
  br label %sleep
sleep:
  %rc = call i32 @clock_nanosleep(i32 {MONOTONIC}, i32 {ABSOLUTE}, ptr %time, ptr null)
  %eintr = icmp eq i32 %rc, {INTERRUPTED}
  br i1 %eintr, label %sleep, label %slept
slept:
  %interrupt = load atomic i64, ptr %interrupt.place acquire, align 8
  %set = icmp ne i64 %interrupt, 0
  br i1 %set, label %interrupted, label %stay
interrupted:
  %interrupted.at = call i64 @cosim.now()
  ret i64 %interrupted.at
stay:
  br i1 %last, label %look, label %again
look:
  %woke = call i64 @cosim.now()
  %early = icmp slt i64 %woke, %due
  %spins = icmp sgt i64 %spin, 0
  %spinning = and i1 %early, %spins
  br i1 %spinning, label %look, label %awake
awake:
  ret i64 %woke
}}

define i64 @cosim.trigger(i64 %due, ptr %context) nounwind {{
entry:
  %polled = alloca [2 x i32], align 8
  %bytes = alloca i64, align 8
  %interrupt.place = getelementptr inbounds i64, ptr %context, i64 {INTERRUPT}
  %file.place = getelementptr inbounds i64, ptr %context, i64 {FILE}
  %timeout.place = getelementptr inbounds i64, ptr %context, i64 {TIMEOUT}
  %size.place = getelementptr inbounds i64, ptr %context, i64 {SIZE}
  %file.whole = load i64, ptr %file.place
  %timeout.whole = load i64, ptr %timeout.place
  %size = load i64, ptr %size.place
  %file = trunc i64 %file.whole to i32
  %timeout.ns = mul i64 %timeout.whole, 1000000
  %begun = call i64 @cosim.now()
  %until = add i64 %begun, %timeout.ns
  %events = getelementptr inbounds i32, ptr %polled, i64 1
  store i32 %file, ptr %polled
  store i32 1, ptr %events
  br label %look
look:
  %rest.ns = phi i64 [ %timeout.ns, %entry ], [ %rest.next, %stay ]
  %short = icmp slt i64 %rest.ns, {POLL_NS}
  %slice.ns = select i1 %short, i64 %rest.ns, i64 {POLL_NS}
  %slice.more = add i64 %slice.ns, 999999
  %slice = sdiv i64 %slice.more, 1000000
  %slice.ms = trunc i64 %slice to i32
  %ready = call i32 @poll(ptr %polled, i64 1, i32 %slice.ms)
  %some = icmp sgt i32 %ready, 0
  br i1 %some, label %read, label %wait
wait:
  %interrupt = load atomic i64, ptr %interrupt.place acquire, align 8
  %set = icmp ne i64 %interrupt, 0
  br i1 %set, label %none, label %stay
stay:
  %looked = call i64 @cosim.now()
  %rest.next = sub i64 %until, %looked
  %over = icmp sle i64 %rest.next, 0
  br i1 %over, label %none, label %look
read:
  %got = call i64 @read(i32 %file, ptr %bytes, i64 %size)
  %any = icmp sgt i64 %got, 0
  br i1 %any, label %arrived, label %none
arrived:
  %now = call i64 @cosim.now()
  ret i64 %now
none:
  ret i64 {NO_TRIGGER}
}}

define void @cosim.latencies(i64 %first, i64 %period, i64 %count, ptr %context, ptr %latencies) nounwind {{
entry:
  br label %head
head:
  %k = phi i64 [ 0, %entry ], [ %k.next, %again ]
  %more = icmp slt i64 %k, %count
  br i1 %more, label %again, label %finish
again:
  %offset = mul i64 %k, %period
  %due = add i64 %first, %offset
  %woke = call i64 @cosim.sleep(i64 %due, ptr %context)
  %late = sub i64 %woke, %due
  %place = getelementptr inbounds i64, ptr %latencies, i64 %k
  store i64 %late, ptr %place
  %k.next = add i64 %k, 1
  br label %head
finish:
  ret void
}}
"""
)
