"""Collectives are read from XLA's text: their kind, how often they run, their bytes, and along which axes."""

import pytest

from plainformer.plan.hlo import Amount, Collective, collectives

MESH = {"data": 2, "fsdp": 2, "tensor": 2}

LOOP = """\
HloModule jit_step, is_scheduled=true

%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}

%body (carry: (s32[], f32[6,4])) -> (s32[], f32[6,4]) {
  %carry = (s32[], f32[6,4]) parameter(0)
  %x = f32[3,4]{1,0} get-tuple-element(%carry), index=1
  %whole = f32[6,4]{1,0} all-gather(%x), channel_id=1, replica_groups=GROUPS, dimensions={0}, use_global_device_ids=true
  ROOT %next = (s32[], f32[6,4]) tuple(%x, %whole)
}

%condition (carry: (s32[], f32[6,4])) -> pred[] {
  %carry = (s32[], f32[6,4]) parameter(0)
  ROOT %less = pred[] constant(true)
}

ENTRY %main (p: f32[6,4]) -> f32[] {
  %p = f32[6,4]{1,0} parameter(0)
  %loop = (s32[], f32[6,4]) while(%p), condition=%condition, body=%body, backend_config={"known_trip_count":{"n":"5"}}
  ROOT %both = (f32[6,4]{1,0}, bf16[3]{0}) all-reduce(%p, %p), replica_groups={{0,4},{1,5},{2,6},{3,7}}, to_apply=%add
}
"""


@pytest.mark.parametrize(
    ("groups", "axis"),
    [
        ("{{0,1},{2,3},{4,5},{6,7}}", "tensor"),
        ("[4,2]<=[8]", "tensor"),
        ("[4,2]<=[2,2,2]T(0,2,1)", "fsdp"),
        ("[4,2]<=[2,4]T(1,0)", "data"),
        ("[2,4]<=[8]", "fsdp+tensor"),
        ("[2,4]<=[4,2]T(1,0)", "data+fsdp"),
        ("[1,8]<=[8]", "data+fsdp+tensor"),
        ("mesh['axis_0'=4,'axis_1'=2] {'axis_1'}", "tensor"),
        ("mesh['axis_0'=4,'axis_1'=2] {'axis_0'}", "data+fsdp"),
        ("mesh['axis_0'=8] {'axis_0':(2)2}", "fsdp"),
        ("mesh['axis_0'=4,'axis_1'=2], device_ids=([2,2,2]T(1,0,2)) {'axis_1'}", "tensor"),
        ("mesh['axis_0'=2,'axis_1'=4], device_ids=([2,2,2]T(1,0,2)) {'axis_1'}", "data+tensor"),
        ("{{0,3},{1,2},{4,7},{5,6}}", "?"),
    ],
)
def test_what_runs_in_a_loop_counts_each_time_along_the_axis_of_its_groups(groups, axis):
    found = collectives(LOOP.replace("GROUPS", groups), MESH)
    # 6 x 4 numbers of 4 bytes, five times; and once as many with three of 2 bytes, between devices four apart.
    assert found == {Collective("all-gather", axis): Amount(5, 480), Collective("all-reduce", "data"): Amount(1, 102)}


def test_one_that_is_begun_and_ended_apart_counts_once_with_what_it_makes():
    text = """\
ENTRY %main (p: bf16[3,4]) -> bf16[6,4] {
  %begun = (bf16[3,4]{1,0}, bf16[6,4]{1,0}) all-gather-start(%p), replica_groups=[4,2]<=[8], dimensions={0}
  %ended = bf16[6,4]{1,0} all-gather-done(%begun)
  %two = ((bf16[3]{0}, bf16[5]{0}), (bf16[6]{0}, bf16[10]{0})) all-gather-start(%p, %p), replica_groups=[4,2]<=[8]
  %part = f32[5]{0} reduce-scatter(%p), replica_groups=[2,4]<=[8], dimensions={0}, to_apply=%add
  %sent = f32[7]{0} collective-permute(%p), source_target_pairs={{0,2},{2,0},{1,3},{3,1},{4,6},{6,4}}
}
"""
    assert collectives(text, MESH) == {
        Collective("all-gather", "tensor"): Amount(2, 48 + 32),
        Collective("collective-permute", "fsdp"): Amount(1, 28),
        Collective("reduce-scatter", "fsdp+tensor"): Amount(1, 80),
    }


def test_a_program_of_one_device_exchanges_nothing():
    assert (
        collectives("ENTRY %main (p: f32[3]) -> f32[3] {\n  ROOT %p = f32[3]{0} parameter(0)\n}\n", {"data": 1}) == {}
    )
