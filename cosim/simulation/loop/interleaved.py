"""IR that copies one run out of arrays of many, and back: element i of run k of `runs` is at [i · runs + k], so that
neighbouring threads of a GPU access neighbouring words."""

from __future__ import annotations

from cosim.simulation.loop.loop_text import LoopText

# with the name `copy.strided`
STRIDED_COPY = """
define internal void @copy.strided(ptr noalias %source, i64 %source.step, ptr noalias %target, i64 %target.step,
    i64 %count) nounwind {
entry:
  br label %head
head:
  %k = phi i64 [ 0, %entry ], [ %k.next, %element ]
  %more = icmp slt i64 %k, %count
  br i1 %more, label %element, label %end
element:
  %from = mul i64 %k, %source.step
  %to = mul i64 %k, %target.step
  %at = getelementptr inbounds double, ptr %source, i64 %from
  %x = load double, ptr %at, align 8
  %there = getelementptr inbounds double, ptr %target, i64 %to
  store double %x, ptr %there, align 8
  %k.next = add i64 %k, 1
  br label %head
end:
  ret void
}
"""


class InterleavedText(LoopText):
    """Writes functions of run %run of %runs."""

    def own(self, name: str, size: int) -> None:
        """An array of the run alone."""
        self(f"  %{name} = alloca [{max(size, 1)} x double], align 64")

    def take(self, interleaved: str, own: str, count: int) -> None:
        self._copy(self.place(interleaved, "%run"), "%runs", own, "1", count)

    def put(self, own: str, interleaved: str, count: int) -> None:
        self._copy(own, "1", self.place(interleaved, "%run"), "%runs", count)

    def element(self, interleaved: str, index: int) -> str:
        """Where element `index` of the run is."""
        return self.place(self.place(interleaved, self.value(f"mul i64 {index}, %runs")), "%run")

    def _copy(self, source: str, source_step: str, target: str, target_step: str, count: int) -> None:
        arguments = f"ptr {source}, i64 {source_step}, ptr {target}, i64 {target_step}, i64 {count}"
        self(f"  call void @copy.strided({arguments})")
