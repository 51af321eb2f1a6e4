"""Make machine code of the search: ``python -m goldstein.solvers.compiled.build FILE``.

Numba translates the units without optimising them; they are then linked into one module, in which
nothing but the units can be seen from outside, and optimised once. So the code does not depend on
what else a process has compiled, and every process runs the same: that of the file.
"""

import gc
import sys
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numba
from llvmlite import ir

from goldstein.solvers.compiled import search  # noqa: F401 (brings all units)
from goldstein.solvers.compiled.machine import target_machine
from goldstein.solvers.compiled.records import KERNELS, UNIT, UNITS

#: What a unit returns where Numba's code raises an error, which none does.
FAILED = -1


def machine_code() -> bytes:
    """Return an object file with all units."""
    for name in UNITS:
        llvm.add_symbol(name, 1)  # Numba wants to see an address; it is not called
    module = None
    natives = {}
    for name, function in UNITS.items():
        made: Any = numba.njit(UNIT, **KERNELS)(function).overloads[UNIT.args]
        natives[name] = made.fndesc.llvm_func_name
        part = llvm.parse_assembly(made.library.get_llvm_str())
        if module is None:
            module = part
        else:
            module.link_in(part)
    assert module is not None
    glue = llvm.parse_assembly(str(_glue(natives)))
    glue.triple, glue.data_layout = module.triple, module.data_layout
    module.link_in(glue)
    for value in (*module.functions, *module.global_variables):
        if not value.is_declaration and value.name not in UNITS:
            value.linkage = "internal"
    machine = target_machine()
    _optimise(module, machine)
    return bytes(machine.emit_object(module))


def _glue(natives: dict[str, str]) -> Any:
    """The units as C functions, around what Numba makes of them."""
    word, state, nowhere = ir.IntType(64), ir.IntType(32), ir.IntType(8).as_pointer()
    kind = ir.FunctionType(state, [word.as_pointer(), nowhere.as_pointer(), word])
    glue = ir.Module()
    for name, native in natives.items():
        inner = ir.Function(glue, kind, native)
        outer = ir.Function(glue, ir.FunctionType(word, [word]), name)
        builder = ir.IRBuilder(outer.append_basic_block())
        answer, error = builder.alloca(word), builder.alloca(nowhere)
        builder.store(word(FAILED), answer)
        failed = builder.call(inner, [answer, error, outer.args[0]])
        fine = builder.icmp_unsigned("==", failed, state(0))
        builder.ret(builder.select(fine, builder.load(answer), word(FAILED)))
    # Views own nothing, so nothing is ever given back.
    for name in ("NRT_MemInfo_call_dtor", "NRT_Free"):
        unused = ir.Function(glue, ir.FunctionType(ir.VoidType(), [nowhere]), name)
        ir.IRBuilder(unused.append_basic_block()).ret_void()
    return glue


def _optimise(module: Any, machine: Any) -> None:
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = True
    passes = llvm.create_pass_builder(machine, options)
    passes.getModulePassManager().run(module, passes)


if __name__ == "__main__":
    gc.disable()  # a fifth of the time, in a process that lives for seconds
    Path(sys.argv[1]).write_bytes(machine_code())
