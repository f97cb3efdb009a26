"""The envelope of the HTTP API: everything of it is kept, and one broken series costs only itself."""

import math

import msgspec
import pytest

from gputop.sources.metrics.envelope import Envelope, SeriesAnswer, envelope, number, series


def _envelope(body: bytes) -> Envelope:
    found = envelope(body)
    assert found is not None
    return found


def _series(result: bytes, kind: bytes = b"vector") -> tuple[list[SeriesAnswer], int]:
    return series(_envelope(b'{"status":"success","data":{"resultType":"%s","result":%s}}' % (kind, result)).data)


def test_warnings_infos_and_the_partial_mark_are_kept() -> None:
    found = _envelope(b'{"status":"success","data":{},"isPartial":true,"warnings":["w"],"infos":["i"],"new":1}')
    assert (found.warnings, found.infos, found.is_partial) == (["w"], ["i"], True)
    plain = _envelope(b'{"status":"success","data":null,"warnings":null,"errorType":null}')
    assert (plain.warnings, plain.is_partial) == (None, None)


def test_a_vector_a_matrix_a_scalar_and_a_histogram() -> None:
    assert _series(b'[{"metric":{"a":"b"},"value":[1.5,"2"]}]')[0][0].value == (1.5, "2")
    assert _series(b'[{"metric":{},"values":[[1,"2"],[2,"NaN"]]}]', b"matrix")[0][0].values == ((1, "2"), (2, "NaN"))
    assert _series(b'[7,"NaN"]', b"scalar")[0] == [SeriesAnswer({}, (7, "NaN"))]
    assert _series(b'[{"metric":{},"histogram":[1,{"count":"3"}]}]')[0][0].value is None


def test_one_broken_series_costs_only_itself() -> None:
    good = b'{"metric":{"a":"b"},"value":[1,"2"]}'
    found, broken = _series(b'[%s,{"metric":3},{"metric":{},"value":[1,null]},%s,7]' % (good, good))
    assert (len(found), broken) == (2, 3)


def test_raw_control_characters_and_bytes_that_are_no_text_do_not_cost_the_answer() -> None:
    found, broken = _series(b'[{"metric":{"pod":"a\x1b[2J\tb\xff"},"value":[1,"2"]}]')
    assert broken == 0
    assert found[0].metric["pod"] == "a [2J b\N{REPLACEMENT CHARACTER}"


@pytest.mark.parametrize("body", [b"", b"pong", b"[]", b"<html>", b'{"status":"succ', b'{"data":{}}', b'{"status":7}'])
def test_what_is_no_envelope_is_told(body: bytes) -> None:
    assert envelope(body) is None


def test_data_of_another_shape_are_told() -> None:
    with pytest.raises(msgspec.MsgspecError):
        series(_envelope(b'{"status":"success","data":["a"]}').data)


def test_numbers_are_texts() -> None:
    assert number("9223372036854776000") == 2.0**63
    assert number("+Inf") == math.inf
    assert math.isnan(number("NaN"))
    assert math.isnan(number("many"))
