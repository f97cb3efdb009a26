"""The PromQL evaluator, over samples written down here."""

import math

import pytest

from gputop.demo.promql.errors import QueryError
from gputop.demo.promql.evaluate import instant, over_range
from gputop.demo.promql.matching import labels_test, name_test
from gputop.demo.promql.parser import parse
from gputop.demo.series import Sample, intern, number

NAN = math.nan


class Samples:
    """Series with a value every 15 s: {(name, labels): [values]}, the last one at time 150."""

    def __init__(self, series):
        self.series = [(name, intern(labels), values) for name, labels, values in series]

    def _matching(self, matchers):
        accepts, wanted = name_test(matchers), labels_test(matchers)
        return [one for one in self.series if accepts(one[0]) and (wanted is None or wanted(one[1]))]

    def select(self, matchers, at):
        result = []
        for name, labels, values in self._matching(matchers):
            place = len(values) - 1 - int((150 - at) // 15)
            if 0 <= place < len(values) and values[place] is not None:
                result.append(Sample(name, labels, values[place], 150.0 - 15 * (len(values) - 1 - place)))
        return result

    def select_range(self, matchers, start, end):
        result = []
        for name, labels, values in self._matching(matchers):
            stamps = [150.0 - 15 * (len(values) - 1 - place) for place in range(len(values))]
            points = [
                (at, value) for at, value in zip(stamps, values, strict=True) if start < at <= end and value is not None
            ]
            result.append((name, labels, points))
        return result


STORE = Samples(
    [
        ("util", {"gpu": "0", "host": "a", "model": "x"}, [1.0, 2.0, 90.0]),
        ("util", {"gpu": "1", "host": "a", "model": "x"}, [1.0, 2.0, 10.0]),
        ("util", {"gpu": "0", "host": "b", "model": "y"}, [5.0, 5.0, 50.0]),
        ("old", {"gpu": "0", "host": "a"}, [3.0, None, None]),
        ("energy", {"gpu": "0", "host": "a"}, [0.0, 150.0, 300.0, 450.0, 600.0, 750.0]),
        ("reset", {"gpu": "0"}, [100.0, 115.0, 5.0, 20.0]),
        ("info", {"host": "a", "rack": "r1"}, [1.0]),
        ("info", {"host": "b", "rack": "r2"}, [1.0]),
        ("pods", {"host": "a", "pod": "p1"}, [1.0]),
        ("pods", {"host": "a", "pod": "p2"}, [1.0]),
        ("weird", {"q": 'a"b\\c'}, [NAN]),
    ]
)


def run(query, at=150.0):
    return instant(parse(query), STORE, at)


def compact(query):
    value = run(query)
    assert isinstance(value, list)
    return {
        " ".join([one.name, *(f"{key}={text}" for key, text in one.labels.pairs.items())]).strip(): one.value
        for one in value
    }


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("1 + 2 * 3 ^ 2 ^ 0.5 - -1", 1 + 2 * 3 ** (2**0.5) + 1),
        ("-2 ^ 2", -4.0),
        ("7 % 4", 3.0),
        ("1 / 0", math.inf),
        ("0x10 + 1e2", 116.0),
        ("1 > bool 2", 0.0),
        ("time()", 150.0),
        ("scalar(info)", NAN),
        ('scalar(util{host="b"})', 50.0),
        ('"text"', "text"),
    ],
)
def test_scalars(query, expected):
    value = run(query)
    assert value == (pytest.approx(expected, nan_ok=True) if isinstance(expected, float) else expected)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ('util{host="b"}', {"util gpu=0 host=b model=y": 50}),
        ('util{host!="b",gpu="1"}', {"util gpu=1 host=a model=x": 10}),
        ('util{host=~"b|c"}', {"util gpu=0 host=b model=y": 50}),
        ('util{host=~"[^b]",gpu!~"1.*"}', {"util gpu=0 host=a model=x": 90}),
        ('{__name__=~"ut.l|nothing",host="b"}', {"util gpu=0 host=b model=y": 50}),
        ('{"util",host="b"}', {"util gpu=0 host=b model=y": 50}),
        ('util{missing="",host="b"}', {"util gpu=0 host=b model=y": 50}),
        ("util{host='b'} # comment", {"util gpu=0 host=b model=y": 50}),
        ("nothing", {}),
        ("old", {}),
        ('util{host="b"} offset 15s', {"util gpu=0 host=b model=y": 5}),
        ("sum(util)", {"": 150}),
        ("sum by (host) (util)", {"host=a": 100, "host=b": 50}),
        ("sum(util) by (host, missing)", {"host=a": 100, "host=b": 50}),
        ("max without (gpu, model) (util)", {"host=a": 90, "host=b": 50}),
        ("avg(util)", {"": 50}),
        ("min by (host)(util)", {"host=a": 10, "host=b": 50}),
        (
            'count by (__name__) ({host="a"})',
            {"__name__=util": 2, "__name__=energy": 1, "__name__=info": 1, "__name__=pods": 2},
        ),
        ("group by (model) (util)", {"model=x": 1, "model=y": 1}),
        ("topk(1, util)", {"util gpu=0 host=a model=x": 90}),
        ("bottomk by (host) (1, util)", {"util gpu=1 host=a model=x": 10, "util gpu=0 host=b model=y": 50}),
        ('count_values("v", util)', {"v=90": 1, "v=10": 1, "v=50": 1}),
        ("util > 40", {"util gpu=0 host=a model=x": 90, "util gpu=0 host=b model=y": 50}),
        ("util > bool 60", {"gpu=0 host=a model=x": 1, "gpu=1 host=a model=x": 0, "gpu=0 host=b model=y": 0}),
        ("100 - util{gpu='1'}", {"gpu=1 host=a model=x": 90}),
        ("sum by (host)(util) / on (host) count by (host)(util)", {"host=a": 50, "host=b": 50}),
        (
            "util * on (host) group_left (rack) info",
            {
                "gpu=0 host=a model=x rack=r1": 90,
                "gpu=1 host=a model=x rack=r1": 10,
                "gpu=0 host=b model=y rack=r2": 50,
            },
        ),
        (
            "info * on (host) group_right (rack) util",
            {
                "gpu=0 host=a model=x rack=r1": 90,
                "gpu=1 host=a model=x rack=r1": 10,
                "gpu=0 host=b model=y rack=r2": 50,
            },
        ),
        ("sum by (host) (util) - ignoring (rack) info", {"host=a": 99, "host=b": 49}),
        ("util and on (host) (util == 50)", {"util gpu=0 host=b model=y": 50}),
        ("util unless on (host) info{rack='r1'}", {"util gpu=0 host=b model=y": 50}),
        (
            "util{host='b'} or util{gpu='1'}",
            {"util gpu=0 host=b model=y": 50, "util gpu=1 host=a model=x": 10},
        ),
        ("rate(energy[1m])", {"gpu=0 host=a": 10}),
        ("increase(energy[1m])", {"gpu=0 host=a": 600}),
        ("delta(util{host='b'}[1m])", {"gpu=0 host=b model=y": 56.25}),
        ("increase(reset[1m])", {"gpu=0": 35 * 60 / 45}),
        ("resets(reset[5m])", {"gpu=0": 1}),
        ("changes(util{host='b'}[5m])", {"gpu=0 host=b model=y": 1}),
        ("last_over_time(old[10m])", {"old gpu=0 host=a": 3}),
        ("max_over_time(util{host='b'}[5m])", {"gpu=0 host=b model=y": 50}),
        ("avg_over_time(util{host='b'}[5m])", {"gpu=0 host=b model=y": 20}),
        ("count_over_time(util{host='b'}[30s])", {"gpu=0 host=b model=y": 2}),
        ("present_over_time(old[10m])", {"gpu=0 host=a": 1}),
        ("timestamp(util{host='b'})", {"gpu=0 host=b model=y": 150}),
        ("vector(3)", {"": 3}),
        ("abs(-util{host='b'})", {"gpu=0 host=b model=y": 50}),
        ("round(util{host='b'} / 3, 0.5)", {"gpu=0 host=b model=y": 16.5}),
        ("clamp_max(util{host='a'}, 20)", {"gpu=0 host=a model=x": 20, "gpu=1 host=a model=x": 10}),
        ("absent(nothing{a='b'})", {"a=b": 1}),
        ("absent(util)", {}),
        (
            r'label_replace(info, "r", "$1-x", "rack", "r(.)")',
            {"info host=a r=1-x rack=r1": 1, "info host=b r=2-x rack=r2": 1},
        ),
        (
            r'label_replace(info, "r", "$1", "rack", "q(.)")',
            {"info host=a rack=r1": 1, "info host=b rack=r2": 1},
        ),
    ],
)
def test_vectors(query, expected):
    assert compact(query) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("query", "kind", "said"),
    [
        ("", "bad_data", "no expression"),
        ("util{", "bad_data", "end of input"),
        ("util{host=b}", "bad_data", "quoted value"),
        ("util{}{}", "bad_data", "unexpected"),
        ('{host=""}', "bad_data", "non-empty matcher"),
        ('util{host=~"("}', "bad_data", "regexp"),
        ("util $ 3", "bad_data", "'$'"),
        ("rate(util)", "bad_data", "range vector"),
        ("util[5m]", "bad_data", "range vector"),
        ("rate(util[5m:1m])", "bad_data", "subqueries"),
        ("util @ 100", "bad_data", "@ modifier"),
        ("histogram_quantile(0.9, util)", "bad_data", "unknown function"),
        ("1 > 2", "bad_data", "BOOL"),
        ("1 and 2", "bad_data", "set operator"),
        ("sum(1, util)", "bad_data", "number of arguments"),
        ("1 + bool 2", "bad_data", "bool modifier"),
        ("clamp(util)", "bad_data", "argument"),
        ("util * on (host) pods", "execution", "many-to-many"),
        ("util + on (host) info", "execution", "group_left"),
        ('label_replace(util, "gpu", "", "host", ".*")', "execution", "same labelset"),
        ("(" * 500 + "1" + ")" * 500, "bad_data", "too deeply"),
    ],
)
def test_what_it_cannot_answer_it_says(query, kind, said):
    with pytest.raises(QueryError) as caught:
        run(query)
    assert caught.value.kind == kind
    assert said in str(caught.value)


def test_a_range_query_keeps_gaps():
    series = over_range(parse("util{host='b'} or old"), STORE, 105.0, 150.0, 15.0)
    points = {name: [(at, value) for at, value in found] for name, _, found in series}
    assert points == {"util": [(120.0, 5.0), (135.0, 5.0), (150.0, 50.0)], "old": [(120.0, 3.0)]}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1"),
        (0.1, "0.1"),
        (-2.5, "-2.5"),
        (NAN, "NaN"),
        (math.inf, "+Inf"),
        (-math.inf, "-Inf"),
        (9.223372036854776e18, "9223372036854776000"),
        (1e21, "1e+21"),
        (5e-7, "5e-07"),
        (123456789012.5, "123456789012.5"),
    ],
)
def test_numbers_are_spelt_as_prometheus_spells_them(value, text):
    assert number(value) == text


def test_labels_are_escaped_in_text_and_json():
    labels = intern({"q": 'a"b\\c'})
    assert labels.text() == r'q="a\"b\\c"'
    assert labels.json("weird") == r'{"__name__":"weird","q":"a\"b\\c"}'
