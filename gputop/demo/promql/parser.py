"""Reading a query: a recursive-descent parser with Prometheus' operator precedence."""

from gputop.demo.promql.errors import QueryError
from gputop.demo.promql.lexer import Token, seconds, tokens, unquote
from gputop.demo.promql.syntax import (
    Aggregate,
    Binary,
    Call,
    Matcher,
    Negate,
    Node,
    Number,
    Selector,
    Text,
)

AGGREGATIONS = frozenset({"sum", "max", "min", "avg", "count", "group", "topk", "bottomk", "count_values", "stddev"})
_WITH_PARAMETER = frozenset({"topk", "bottomk", "count_values"})

# Loosest first; ^ binds to the right.
_LEVELS: tuple[frozenset[str], ...] = (
    frozenset({"or"}),
    frozenset({"and", "unless"}),
    frozenset({"==", "!=", "<=", "<", ">=", ">"}),
    frozenset({"+", "-"}),
    frozenset({"*", "/", "%", "atan2"}),
)
COMPARISONS = _LEVELS[2]
SETS = frozenset({"and", "or", "unless"})
_DEEPEST = 64


def parse(query: str) -> Node:
    """Parse a query.

    Raises:
        QueryError: It is not PromQL, or uses a part of it that the demo does not answer.
    """
    parser = _Parser(tokens(query))
    if parser.peek().kind == "end":
        raise QueryError("parse error: no expression found in input")
    node = parser.expression(0)
    parser.want_end()
    return node


class _Parser:
    def __init__(self, found: list[Token]) -> None:
        self._tokens = found
        self._place = 0
        self._depth = 0

    def peek(self) -> Token:
        return self._tokens[self._place]

    def _next(self) -> Token:
        token = self._tokens[self._place]
        self._place += 1
        return token

    def _at(self, text: str) -> bool:
        token = self.peek()
        return token.text == text and token.kind in {"operator", "name"}

    def _take(self, text: str) -> bool:
        if self._at(text):
            self._place += 1
            return True
        return False

    def _fail(self, wanted: str) -> QueryError:
        token = self.peek()
        found = "end of input" if token.kind == "end" else repr(token.text)
        return QueryError(f"parse error at char {token.at + 1}: unexpected {found}, expected {wanted}")

    def _want(self, text: str) -> None:
        if not self._take(text):
            raise self._fail(repr(text))

    def want_end(self) -> None:
        if self.peek().kind != "end":
            raise self._fail("end of input")

    def expression(self, level: int) -> Node:
        self._depth += 1
        if self._depth > _DEEPEST * len(_LEVELS):
            raise QueryError("parse error: nested too deeply")
        try:
            return self._binary(level)
        finally:
            self._depth -= 1

    def _binary(self, level: int) -> Node:
        if level == len(_LEVELS):
            return self._unary()
        left = self.expression(level + 1)
        while self.peek().kind in {"operator", "name"} and self.peek().text in _LEVELS[level]:
            operator = self._next().text
            boolean, on, labels, many, include = self._matching(operator)
            right = self.expression(level + 1)
            left = Binary(operator, left, right, boolean, on, labels, many, include)
        return left

    def _matching(self, operator: str) -> tuple[bool, bool, tuple[str, ...], str, tuple[str, ...]]:
        boolean = self._take("bool")
        if boolean and operator not in COMPARISONS:
            raise QueryError("parse error: bool modifier can only be used on comparison operators")
        on, labels, many = False, (), ""
        include: tuple[str, ...] = ()
        if self._at("on") or self._at("ignoring"):
            on = self._next().text == "on"
            labels = self._label_list()
            if self._at("group_left") or self._at("group_right"):
                many = "left" if self._next().text == "group_left" else "right"
                if operator in SETS:
                    raise QueryError(f"parse error: no grouping allowed for {operator!r} operation")
                include = self._label_list() if self._at("(") else ()
        return boolean, on, labels, many, include

    def _label_list(self) -> tuple[str, ...]:
        self._want("(")
        found: list[str] = []
        while not self._take(")"):
            if self.peek().kind != "name":
                raise self._fail("a label name")
            found.append(self._next().text)
            if not self._at(")"):
                self._want(",")
        return tuple(found)

    def _unary(self) -> Node:
        if self._take("-"):
            return Negate(self._unary())
        if self._take("+"):
            return self._unary()
        return self._power()

    def _power(self) -> Node:
        base = self._modified(self._primary())
        if self._take("^"):
            boolean, on, labels, many, include = self._matching("^")
            return Binary("^", base, self._unary(), boolean, on, labels, many, include)
        return base

    def _modified(self, node: Node) -> Node:
        while True:
            if self._take("["):
                node = self._ranged(node)
            elif self._take("offset"):
                sign = -1.0 if self._take("-") else 1.0
                if not isinstance(node, Selector):
                    raise QueryError("parse error: offset must follow a selector")
                offset = sign * self._duration()
                node = Selector(node.matchers, node.range_s, offset)
            elif self._at("@"):
                raise QueryError("parse error: the @ modifier is not supported here")
            else:
                return node

    def _ranged(self, node: Node) -> Selector:
        if not isinstance(node, Selector) or node.range_s is not None or node.offset_s:
            raise QueryError("parse error: ranges only allowed for vector selectors; subqueries are not supported")
        length = self._duration()
        # A name may begin with a colon, so the step of a subquery may have been read as one.
        if self.peek().text.startswith(":"):
            raise QueryError("parse error: subqueries are not supported here")
        self._want("]")
        if length <= 0:
            raise QueryError("parse error: duration must be greater than 0")
        return Selector(node.matchers, length)

    def _duration(self) -> float:
        token = self.peek()
        if token.kind == "duration":
            self._place += 1
            return seconds(token.text)
        if token.kind == "number":
            self._place += 1
            return float(token.text)
        raise self._fail("a duration")

    def _primary(self) -> Node:
        token = self.peek()
        if token.kind == "number":
            self._place += 1
            return Number(float(int(token.text, 16)) if token.text[:2] in {"0x", "0X"} else float(token.text))
        if token.kind == "string":
            self._place += 1
            return Text(unquote(token.text))
        if self._take("("):
            node = self.expression(0)
            self._want(")")
            return node
        if self._at("{"):
            return Selector(self._matchers(""))
        if token.kind == "name":
            return self._named(self._next())
        raise self._fail("an expression")

    def _named(self, token: Token) -> Node:
        name = token.text
        if name in AGGREGATIONS and (self._at("(") or self._at("by") or self._at("without")):
            return self._aggregate(name)
        if name.lower() in {"inf", "nan"} and not self._at("{"):
            return Number(float(name))
        if self._take("("):
            return Call(name, tuple(self._arguments()))
        return Selector(self._matchers(name))

    def _arguments(self) -> list[Node]:
        found: list[Node] = []
        while not self._take(")"):
            found.append(self.expression(0))
            if not self._at(")"):
                self._want(",")
        return found

    def _aggregate(self, operator: str) -> Aggregate:
        labels, without, grouped = self._grouping()
        self._want("(")
        arguments = self._arguments()
        if not grouped:
            labels, without, grouped = self._grouping()
        wanted = 2 if operator in _WITH_PARAMETER else 1
        if len(arguments) != wanted:
            raise QueryError(
                f"parse error: wrong number of arguments for aggregate expression provided, "
                f"expected {wanted}, got {len(arguments)}"
            )
        parameter = arguments[0] if wanted == 2 else None
        return Aggregate(operator, arguments[-1], parameter, labels, without)

    def _grouping(self) -> tuple[tuple[str, ...], bool, bool]:
        if self._at("by") or self._at("without"):
            without = self._next().text == "without"
            return self._label_list(), without, True
        return (), False, False

    def _matchers(self, name: str) -> tuple[Matcher, ...]:
        found = [Matcher("__name__", "=", name)] if name else []
        if self._take("{"):
            while not self._take("}"):
                found.append(self._matcher())
                if not self._at("}"):
                    self._want(",")
        if not any(_selective(matcher) for matcher in found):
            raise QueryError("parse error: vector selector must contain at least one non-empty matcher")
        return tuple(found)

    def _matcher(self) -> Matcher:
        token = self._next()
        # A quoted name stands for the metric itself, or for a label of any characters (Prometheus 3).
        if token.kind == "string":
            if not (self._at("=") or self._at("!=") or self._at("=~") or self._at("!~")):
                return Matcher("__name__", "=", unquote(token.text))
            label = unquote(token.text)
        elif token.kind == "name":
            label = token.text
        else:
            self._place -= 1
            raise self._fail("a label name")
        operator = self._next()
        if operator.text not in {"=", "!=", "=~", "!~"}:
            self._place -= 1
            raise self._fail("a matcher")
        value = self.peek()
        if value.kind != "string":
            raise self._fail("a quoted value")
        self._place += 1
        return Matcher(label, operator.text, unquote(value.text))


def _selective(matcher: Matcher) -> bool:
    if matcher.operator == "=":
        return matcher.value != ""
    if matcher.operator == "!=":
        return matcher.value == ""
    return matcher.operator == "=~" and matcher.value not in {"", ".*"}
