"""Reads the queries of the page: search, order, and which part of a list."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from aiohttp import web

LIMIT = 200
MOST = 5000


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A part of a list: those that contain *search*, by *sort*, from *offset* on."""

    search: str
    sort: str
    descending: bool
    limit: int
    offset: int

    @classmethod
    def of(cls, query: Mapping[str, str], fields: Sequence[str]) -> "Page":
        """Read `?search=&sort=&order=&limit=&offset=`; a list can be sorted by *fields*.

        Raises:
            ValueError: What is wrong, and what would be right.
        """
        sort, order = query.get("sort") or fields[0], query.get("order") or "asc"
        if sort not in fields:
            raise ValueError(f"sort={sort} is none of {', '.join(fields)}")
        if order not in {"asc", "desc"}:
            raise ValueError(f"order={order} is neither asc nor desc")
        return cls(
            search=query.get("search", ""),
            sort=sort,
            descending=order == "desc",
            limit=number(query, "limit", LIMIT, MOST),
            offset=number(query, "offset", 0, 10_000_000),
        )


def number(query: Mapping[str, str], name: str, default: int, most: int) -> int:
    """Return a whole number of a query, from 0 to *most*.

    Raises:
        ValueError: It is none.
    """
    text = query.get(name, "")
    if not text:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 12 and int(text) <= most):
        raise ValueError(f"{name}={text[:40]} is no whole number from 0 to {most}")
    return int(text)


def bad_query(error: ValueError) -> web.Response:
    """Return the answer to a query that is wrong."""
    return web.json_response({"error": str(error)}, status=400)
