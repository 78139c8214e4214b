define void @sines(ptr %x, ptr %sines, ptr %cosines, i64 %count) {
entry:
  br label %next
next:
  %k = phi i64 [ 0, %entry ], [ %k.next, %next ]
  %from = getelementptr double, ptr %x, i64 %k
  %value = load double, ptr %from
  %both = call { double, double } @cosim.sincos.1(double %value)
  %sine = extractvalue { double, double } %both, 0
  %cosine = extractvalue { double, double } %both, 1
  %to.sine = getelementptr double, ptr %sines, i64 %k
  store double %sine, ptr %to.sine
  %to.cosine = getelementptr double, ptr %cosines, i64 %k
  store double %cosine, ptr %to.cosine
  %k.next = add i64 %k, 1
  %more = icmp slt i64 %k.next, %count
  br i1 %more, label %next, label %done
done:
  ret void
}
