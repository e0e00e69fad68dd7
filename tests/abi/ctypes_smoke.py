"""ctypes_smoke.py: call the shared library through its C ABI alone."""
import ctypes as c
import sys

CUDA, SIM = 1, 2


class Config(c.Structure):
    _fields_ = [(name, c.c_uint32) for name in (
        "struct_size", "device", "attention_ranks", "ffn_ranks", "hidden", "dtype", "experts",
        "top_k", "capacity", "lanes", "ctas", "timeout_ms", "startup_timeout_ms",
        "reserved")] + [("arch", c.c_char_p)]


class Kernel(c.Structure):
    _fields_ = [("entry", c.c_char * 24), ("shape", c.c_char * 8)] + [
        (name, c.c_uint32) for name in ("duty", "warps", "max_ctas", "bucket_from", "bucket_to")]


class Plan(c.Structure):
    _fields_ = [(name, c.c_uint32) for name in ("struct_size", "rank", "role", "kernel_count")] + [
        (name, c.c_uint64) for name in ("window_bytes", "inbox_rows", "inbox_row_bytes",
                                        "state_bytes")] + [("kernels", Kernel * 16)] + [
                                            ("receive_rows", c.c_uint64),
                                            ("local_experts", c.c_uint32), ("ctas", c.c_uint32)]


def config_of(**fields):
    config = Config(c.sizeof(Config), CUDA, 2, 2, 2048, 1, 128, 8, 2048, 1)
    for name, value in fields.items():
        setattr(config, name, value)
    return config


def main():
    library = c.CDLL(sys.argv[1])
    for name in ("afdep_version", "afdep_last_error", "afdep_status_name"):
        getattr(library, name).restype = c.c_char_p
    assert library.afdep_version().count(b".") == 2, library.afdep_version()
    assert library.afdep_status_name(2) == b"AFDEP_ERROR_CONFIG"

    plan = Plan(c.sizeof(Plan))
    assert library.afdep_plan_query(c.byref(config_of()), 0, c.byref(plan)) == 0, \
        library.afdep_last_error()
    assert (plan.role, plan.inbox_rows, plan.inbox_row_bytes) == (2, 2 * 2048, 4096)
    assert plan.kernels[0].entry == b"receive_few", plan.kernels[0].entry

    assert library.afdep_plan_query(c.byref(config_of(hidden=4100)), 0, c.byref(plan)) == 2
    assert library.afdep_last_error() == b"hidden is 4100; it must be a multiple of 8"
    assert library.afdep_plan_query(None, 0, c.byref(plan)) == 1

    group, buffers = c.c_void_p(), (c.c_void_p * 2)()
    config = config_of(device=SIM, attention_ranks=1, ffn_ranks=1, hidden=64, capacity=4)
    assert library.afdep_group_create_local(SIM, 2, None, c.byref(group)) == 0
    status = library.afdep_buffer_create(group, c.byref(config), buffers)
    if status == 13:
        print("no C++ compiler:", library.afdep_last_error().decode())
    else:
        assert status == 0, library.afdep_last_error()
        for buffer in buffers:
            assert library.afdep_buffer_check(c.c_void_p(buffer)) == 0
            library.afdep_buffer_destroy(c.c_void_p(buffer))
    library.afdep_group_destroy(group)
    print("the shared library answers as its headers say")


main()
