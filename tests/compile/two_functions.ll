
@table = internal constant [2 x double] [double 2.0, double 3.0]
declare double @llvm.fabs.f64(double)
define internal double @cosim.twice(double %x) alwaysinline nounwind {
  %y = fadd double %x, %x
  ret double %y
}
define internal void @inner(ptr %in0, ptr %out0) nounwind {
  %x = load double, ptr %in0
  %y = call double @cosim.twice(double %x)
  store double %y, ptr %out0
  ret void
}
define void @outer(ptr %in0, ptr %out0) nounwind {
  call void @inner(ptr %in0, ptr %out0)
  ret void
}
