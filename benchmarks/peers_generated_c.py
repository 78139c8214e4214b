"""The strongest peers of single evaluations: the algorithms of Pinocchio as CasADi expressions, generated as C.

The expressions are built from Pinocchio's model by its algorithms (Featherstone, Rigid Body Dynamics Algorithms, tables
5.1 and 7.1, in local frames), as its C++ templates do; its Python packages lack `pinocchio.casadi`. They have 8 to 13 %
fewer operations than the templates for the forward dynamics of UR5, TALOS and a chain, and up to 3 % fewer for
the inverse dynamics.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.paired_timing import RepeatedCall
from benchmarks.rows import NotMeasured
from cosim.core.compile.jit import Library
from cosim.core.trust.private_cache import code_folder

FLAGS = ("-O3", "-march=native", "-fno-math-errno", "-shared", "-fPIC")
LONGEST_BUILD = 600  # s

# void f(q, v, x, out) n times; the first element of x depends on the result before, so no call can begin early
LOOP = """
define void @loop(ptr %f, ptr %q, ptr %v, ptr %x, ptr %out, i64 %n) nounwind {
entry:
  br label %again
again:
  %k = phi i64 [ 0, %entry ], [ %k.next, %again ]
  call void %f(ptr %q, ptr %v, ptr %x, ptr %out)
  %result = load double, ptr %out, align 8
  %given = load double, ptr %x, align 8
  %small = fmul double %result, 0x3D719799812DEA11
  %next = fadd double %given, %small
  store double %next, ptr %x, align 8
  %k.next = add i64 %k, 1
  %more = icmp slt i64 %k.next, %n
  br i1 %more, label %again, label %finish
finish:
  ret void
}
"""


def native_loop(address: int, q: np.ndarray, v: np.ndarray, x: np.ndarray) -> tuple[RepeatedCall, np.ndarray]:
    """(n calls in machine code of the function at an address, its result): f(q, v, x, out), vectors of doubles."""
    loop = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 5, ctypes.c_int64)(_loop_library()["loop"])
    arrays, out = [np.array(a, dtype=float) for a in (q, v, x)], np.zeros(len(v))

    def block(n: int) -> None:
        loop(address, *(a.ctypes.data for a in (*arrays, out)), n)

    block(1)
    first = out.copy()
    return block, first


@cache
def _loop_library() -> Library:
    return Library(LOOP, ["loop"], {})


# --- the expressions ---------------------------------------------------------------------------------------------


class _Joint(NamedTuple):
    """A joint of one dof in Pinocchio's model: parent (0: the ground), placement, axis, and body."""

    parent: int
    rotation: np.ndarray
    position: np.ndarray
    axis: np.ndarray
    slides: bool
    mass: float
    moment: np.ndarray  # m c
    inertia: np.ndarray  # about the origin of the joint


def _joints(tree: Any) -> list[_Joint]:
    found = []
    for k in range(1, tree.njoints):
        model, place, body = tree.joints[k], tree.jointPlacements[k], tree.inertias[k]
        kind = model.shortname().removeprefix("JointModel")
        unaligned: Any = getattr(model.extract() if hasattr(model, "extract") else model, "axis", None)
        axis = np.eye(3)["XYZ".index(kind[-1])] if kind[-1] in "XYZ" else np.ravel(unaligned)
        c = np.array(body.lever)
        about = body.inertia + body.mass * (c @ c * np.eye(3) - np.outer(c, c))
        slides = kind.startswith("P")
        found.append(
            _Joint(tree.parents[k], place.rotation, place.translation, axis, slides, body.mass, body.mass * c, about)
        )
    return found


def _skew(a: Any) -> Any:
    import casadi

    return casadi.skew(a)


def _symmetric(matrix: Any) -> Any:
    """With the entries above the diagonal replaced by those below it, which are computed anyway."""
    import casadi

    return casadi.tril2symm(casadi.tril(matrix))


def _places(joints: list[_Joint], q: Any) -> list[tuple[Any, Any]]:
    """(rotation, position) of each joint's frame in its parent's."""
    import casadi

    found = []
    for k, joint in enumerate(joints):
        if joint.slides:
            found.append((casadi.SX(joint.rotation), joint.position + joint.rotation @ joint.axis * q[k]))
            continue
        s, c, a = casadi.sin(q[k]), casadi.cos(q[k]), joint.axis
        outer = np.outer(a, a)
        turn = outer + c * casadi.sparsify(casadi.SX(np.eye(3) - outer)) + s * casadi.sparsify(casadi.SX(_cross(a)))
        found.append((casadi.mtimes(casadi.sparsify(casadi.SX(joint.rotation)), turn), casadi.SX(joint.position)))
    return found


def _cross(a: np.ndarray) -> np.ndarray:
    return np.array([[0.0, -a[2], a[1]], [a[2], 0.0, -a[0]], [-a[1], a[0], 0.0]])


def _motion(joint: _Joint, value: Any) -> tuple[Any, Any]:
    """(linear, angular) of a joint that moves with this speed."""
    import casadi

    along, none = casadi.sparsify(casadi.SX(joint.axis)) * value, casadi.SX(3, 1)
    return (along, none) if joint.slides else (none, along)


def _body_force(joint: _Joint, linear: Any, angular: Any) -> tuple[Any, Any]:
    """I m: (force, moment) of the rigid inertia of a joint's body on a motion."""
    import casadi

    h = casadi.SX(joint.moment)
    return joint.mass * linear - casadi.cross(h, angular), casadi.mtimes(
        casadi.SX(joint.inertia), angular
    ) + casadi.cross(h, linear)


def _velocities(joints: list[_Joint], places: list[tuple[Any, Any]], v: Any) -> list[tuple[Any, Any]]:
    import casadi

    moving: list[tuple[Any, Any]] = []
    for k, (joint, (R, p)) in enumerate(zip(joints, places, strict=True)):
        own = _motion(joint, v[k])
        if joint.parent:
            linear, angular = moving[joint.parent - 1]
            linear = casadi.mtimes(R.T, linear - casadi.cross(p, angular))
            own = linear + own[0], casadi.mtimes(R.T, angular) + own[1]
        moving.append(own)
    return moving


def _gyroscopic(joint: _Joint, moving: tuple[Any, Any]) -> tuple[Any, Any]:
    """v ×* I v"""
    import casadi

    (linear, angular), (f, n) = moving, _body_force(joint, *moving)
    return casadi.cross(angular, f), casadi.cross(angular, n) + casadi.cross(linear, f)


def _bias(joint: _Joint, moving: tuple[Any, Any], speed: Any) -> tuple[Any, Any]:
    """v × S q̇"""
    import casadi

    (linear, angular), (own_linear, own_angular) = moving, _motion(joint, speed)
    return casadi.cross(angular, own_linear) + casadi.cross(linear, own_angular), casadi.cross(angular, own_angular)


def _along(joint: _Joint, force: tuple[Any, Any]) -> Any:
    import casadi

    return casadi.dot(casadi.sparsify(casadi.SX(joint.axis)), force[0 if joint.slides else 1])


def forward_expression(joints: list[_Joint], gravity: np.ndarray, q: Any, v: Any, tau: Any) -> Any:
    """q̈ by the articulated-body algorithm."""
    import casadi

    n = len(joints)
    places = _places(joints, q)
    moving = _velocities(joints, places, v)
    # blocks of the articulated inertia: f = A a + Bᵀ α, n = B a + C α
    A = [casadi.sparsify(casadi.SX(joint.mass * np.eye(3))) for joint in joints]
    B = [casadi.sparsify(casadi.SX(_cross(joint.moment))) for joint in joints]
    C = [casadi.sparsify(casadi.SX(joint.inertia)) for joint in joints]
    force = [_gyroscopic(joint, m) for joint, m in zip(joints, moving, strict=True)]
    bias = [_bias(joint, m, v[k]) for k, (joint, m) in enumerate(zip(joints, moving, strict=True))]
    U: list[Any] = [None] * n
    scale: list[Any] = [None] * n
    u: list[Any] = [None] * n
    for k in reversed(range(n)):
        joint, axis = joints[k], casadi.sparsify(casadi.SX(joints[k].axis))
        if joint.slides:
            U[k] = casadi.mtimes(A[k], axis), casadi.mtimes(B[k], axis)
        else:
            U[k] = casadi.mtimes(B[k].T, axis), casadi.mtimes(C[k], axis)
        scale[k] = 1.0 / _along(joint, U[k])
        u[k] = tau[k] - _along(joint, force[k])
        if not joint.parent:
            continue
        f, m = U[k]
        scaled = f * scale[k], m * scale[k]
        a = _symmetric(A[k] - casadi.mtimes(scaled[0], f.T))
        b = B[k] - casadi.mtimes(scaled[1], f.T)
        c = _symmetric(C[k] - casadi.mtimes(scaled[1], m.T))
        (linear, angular), (fl, nl) = bias[k], force[k]
        fl = fl + casadi.mtimes(a, linear) + casadi.mtimes(b.T, angular) + scaled[0] * u[k]
        nl = nl + casadi.mtimes(b, linear) + casadi.mtimes(c, angular) + scaled[1] * u[k]
        (R, p), up = places[k], joint.parent - 1
        a = _symmetric(casadi.mtimes([R, a, R.T]))
        b = casadi.mtimes([R, b, R.T])
        c = _symmetric(casadi.mtimes([R, c, R.T]))
        P = _skew(p)
        moved = b + casadi.mtimes(P, a)
        A[up], B[up] = A[up] + a, B[up] + moved
        C[up] = C[up] + _symmetric(c - casadi.mtimes(moved, P) + casadi.mtimes(P, b.T))
        fl, nl = casadi.mtimes(R, fl), casadi.mtimes(R, nl)
        force[up] = force[up][0] + fl, force[up][1] + nl + casadi.cross(p, fl)
    result: list[Any] = [None] * n
    accelerations: list[tuple[Any, Any]] = []
    ground = casadi.SX(-gravity), casadi.SX(3, 1)
    for k, (joint, (R, p)) in enumerate(zip(joints, places, strict=True)):
        linear, angular = accelerations[joint.parent - 1] if joint.parent else ground
        linear = casadi.mtimes(R.T, linear - casadi.cross(p, angular)) + bias[k][0]
        angular = casadi.mtimes(R.T, angular) + bias[k][1]
        f, m = U[k]
        result[k] = scale[k] * (u[k] - casadi.dot(f, linear) - casadi.dot(m, angular))
        own = _motion(joint, result[k])
        accelerations.append((linear + own[0], angular + own[1]))
    return casadi.vertcat(*result)


def inverse_expression(joints: list[_Joint], gravity: np.ndarray, q: Any, v: Any, qdd: Any) -> Any:
    """τ by the recursive Newton–Euler algorithm."""
    import casadi

    places = _places(joints, q)
    moving = _velocities(joints, places, v)
    accelerations: list[tuple[Any, Any]] = []
    force = []
    for k, (joint, (R, p)) in enumerate(zip(joints, places, strict=True)):
        ground = casadi.SX(-gravity), casadi.SX(3, 1)
        linear, angular = accelerations[joint.parent - 1] if joint.parent else ground
        bias, own = _bias(joint, moving[k], v[k]), _motion(joint, qdd[k])
        linear = casadi.mtimes(R.T, linear - casadi.cross(p, angular)) + bias[0] + own[0]
        angular = casadi.mtimes(R.T, angular) + bias[1] + own[1]
        accelerations.append((linear, angular))
        of_body, gyroscopic = _body_force(joint, linear, angular), _gyroscopic(joint, moving[k])
        force.append((of_body[0] + gyroscopic[0], of_body[1] + gyroscopic[1]))
    result: list[Any] = [None] * len(joints)
    for k in reversed(range(len(joints))):
        joint, (R, p) = joints[k], places[k]
        result[k] = _along(joint, force[k])
        if joint.parent:
            up, f = joint.parent - 1, casadi.mtimes(R, force[k][0])
            force[up] = force[up][0] + f, force[up][1] + casadi.mtimes(R, force[k][1]) + casadi.cross(p, f)
    return casadi.vertcat(*result)


EXPRESSIONS: dict[str, Callable[..., Any]] = {
    "forward_dynamics": forward_expression,
    "inverse_dynamics": inverse_expression,
}


def expression(tree: Any, function: str) -> Any:
    """(q, v, x) -> result as a function of CasADi without common subexpressions; tree: of Pinocchio, of joints with one
    dof."""
    import casadi

    q, v, x = (casadi.SX.sym(name, tree.nv) for name in "qvx")
    result = EXPRESSIONS[function](_joints(tree), np.array(tree.gravity.linear), q, v, x)
    return casadi.Function("peer", [q, v, x], [result], {"cse": True})


# --- the compiler ------------------------------------------------------------------------------------------------


def generated_c(function: Any) -> str:
    """The C source of a function, with an entry `peer_call(q, v, x, out)`."""
    import casadi

    generator = casadi.CodeGenerator("peer.c")
    generator.add(function)
    size = max(function.sz_w(), 1)
    return generator.dump() + (
        "\nvoid peer_call(const double* q, const double* v, const double* x, double* out) {\n"
        f"  const double* arg[{max(function.sz_arg(), 3)}] = {{q, v, x}};\n"
        f"  double* res[{max(function.sz_res(), 1)}] = {{out}};\n"
        f"  long long iw[{max(function.sz_iw(), 1)}];\n  static double w[{size}];\n"
        "  peer(arg, res, iw, w, 0);\n}\n"
    )


def compiled_c(source: str) -> ctypes.CDLL:
    """The library of a C source, built by `cc` and kept in the cache. Raises NotMeasured without a compiler, and if it
    fails."""
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        raise NotMeasured("no C compiler: install gcc or clang, or set CC")
    version = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=False).stdout
    key = hashlib.sha256("\n".join([version, *FLAGS, source]).encode()).hexdigest()
    library = code_folder() / f"{key}.so"
    if not library.is_file():
        with tempfile.TemporaryDirectory() as folder:
            path, built = Path(folder, "peer.c"), Path(folder, "peer.so")
            path.write_text(source)
            command = [compiler, *FLAGS, str(path), "-o", str(built), "-lm"]
            try:
                done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST_BUILD, check=False)
            except subprocess.TimeoutExpired:
                raise NotMeasured(f"{compiler} took more than {LONGEST_BUILD} s") from None
            if done.returncode:
                raise NotMeasured(f"{compiler} failed: {(done.stderr.strip().splitlines() or [''])[-1]}")
            library.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(built, f"{library}.new")
            os.replace(f"{library}.new", library)
    return ctypes.CDLL(str(library))
