"""A secret shows itself to nobody but the one who asks for it."""

import copy
import pickle

from gputop.model.endpoint import Endpoint
from gputop.model.secret import Secret


def test_it_is_hidden_wherever_it_is_printed() -> None:
    secret = Secret("hunter2")
    shown = f"{secret} {secret!r} {[secret]} {Endpoint(url='http://n1', password=secret, token=secret)!r}"
    assert "hunter2" not in shown
    assert "hidden" in repr(secret)
    assert secret.reveal() == "hunter2"


def test_it_is_equal_by_value_and_empty_is_false() -> None:
    assert Secret("a") == Secret("a")
    assert Secret("a") != Secret("b")
    assert Secret("a") != "a"
    assert len({Secret("a"), Secret("a")}) == 1
    assert not Secret()
    assert Secret("x")


def test_it_does_not_leave_in_a_dump() -> None:
    assert b"hunter2" not in pickle.dumps(Secret("hunter2"))
    assert not copy.deepcopy(Secret("hunter2"))
