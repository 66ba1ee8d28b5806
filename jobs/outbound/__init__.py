"""Outgoing HTTP: checked addresses, budgets of time, no redirects, nothing secret in words."""

from __future__ import annotations

from jobs.outbound.addresses import Resolver, host_and_port, is_named, parse, refusal, shown
from jobs.outbound.client import Outbound
from jobs.outbound.credentials import ClientCredentials, Fixed, Grant

__all__ = [
    "ClientCredentials",
    "Fixed",
    "Grant",
    "Outbound",
    "Resolver",
    "host_and_port",
    "is_named",
    "parse",
    "refusal",
    "shown",
]
