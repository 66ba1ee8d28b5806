"""Outgoing HTTP: checked addresses, budgets of time, no redirects, nothing secret in words."""

from __future__ import annotations

from jobs.outbound.addresses import (
    Resolver,
    host_and_port,
    is_named,
    named_host,
    parse,
    refusal,
    shown,
)
from jobs.outbound.client import Outbound
from jobs.outbound.credentials import (
    ClientCredentials,
    Fixed,
    Grant,
    credentials_of,
    fixed_headers,
)

__all__ = [
    "ClientCredentials",
    "Fixed",
    "Grant",
    "Outbound",
    "Resolver",
    "credentials_of",
    "fixed_headers",
    "host_and_port",
    "is_named",
    "named_host",
    "parse",
    "refusal",
    "shown",
]
