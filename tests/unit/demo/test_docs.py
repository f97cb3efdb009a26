"""docs/demo.md says all that a scenario and the HTTP switches may say."""

import re
from typing import get_args

import msgspec
import pytest

from gputop.demo import httpfault, scenario
from gputop.demo.exporters.dcgm import GENERATIONS
from gputop.demo.faults import AnyFault
from gputop.demo.load import PROFILES
from gputop.demo.models import MODELS


@pytest.fixture
def words(repo):
    return set(re.findall(r"`([^`\n]+)`", (repo / "docs" / "demo.md").read_text()))


def test_every_fault_and_its_keys_are_described(words):
    for fault in get_args(AnyFault):
        info = msgspec.inspect.type_info(fault)
        assert isinstance(info, msgspec.inspect.StructType)
        assert info.tag in words
        assert {field.name for field in info.fields} - {"node", "gpus"} <= words | {"at_s", "until_s"}


def test_every_key_name_and_kind_is_described(words):
    keys = {*scenario.NodeGroup.__struct_fields__, *scenario.JobGroup.__struct_fields__}
    named = {*PROFILES, *MODELS, *GENERATIONS, *scenario.names(), *get_args(httpfault.Kind)}
    assert not (keys | named) - words
