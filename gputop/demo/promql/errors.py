"""Why a query cannot be answered, in the two kinds that the HTTP API tells apart."""


class QueryError(Exception):
    """A query that cannot be answered.

    ``kind`` is the API's errorType: ``bad_data`` for a query that is wrong or not understood (HTTP 400),
    ``execution`` for one that fails on the data (HTTP 422).
    """

    def __init__(self, message: str, kind: str = "bad_data") -> None:
        super().__init__(message)
        self.kind = kind
