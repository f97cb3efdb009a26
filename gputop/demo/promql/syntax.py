"""The syntax tree of a query."""

import msgspec


class Matcher(msgspec.Struct, frozen=True):
    """One label matcher: ``operator`` is =, !=, =~ or !~."""

    label: str
    operator: str
    value: str


class Number(msgspec.Struct, frozen=True, tag=True):
    """A number."""

    value: float


class Text(msgspec.Struct, frozen=True, tag=True):
    """A string."""

    value: str


class Selector(msgspec.Struct, frozen=True, tag=True):
    """A vector selector; with ``range_s`` a range selector. The metric's name is one of the matchers."""

    matchers: tuple[Matcher, ...]
    range_s: float | None = None
    offset_s: float = 0.0


class Call(msgspec.Struct, frozen=True, tag=True):
    """A function call."""

    function: str
    arguments: tuple["Node", ...]


class Aggregate(msgspec.Struct, frozen=True, tag=True):
    """An aggregation; ``parameter`` is the k of topk or the label of count_values."""

    operator: str
    inner: "Node"
    parameter: "Node | None"
    labels: tuple[str, ...]
    without: bool


class Binary(msgspec.Struct, frozen=True, tag=True):
    """A binary operation with its matching clause.

    ``labels`` with ``on`` are the labels that match, without it those that are ignored. ``many`` is the side
    that may have several partners (left, right or empty), ``include`` the labels copied from the other side.
    """

    operator: str
    left: "Node"
    right: "Node"
    boolean: bool = False
    on: bool = False
    labels: tuple[str, ...] = ()
    many: str = ""
    include: tuple[str, ...] = ()


class Negate(msgspec.Struct, frozen=True, tag=True):
    """Unary minus."""

    inner: "Node"


Node = Number | Text | Selector | Call | Aggregate | Binary | Negate
