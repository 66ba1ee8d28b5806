"""The file, ``env:`` and ``file:`` into frozen values; what is wrong names file, key and mend."""

from __future__ import annotations

from app.config.environment import process_environment
from app.config.findings import Finding, findings
from app.config.fingerprint import changed_keys
from app.config.loading import load
from app.config.secret import Secret, SecretUrl
from app.config.table import Problem
from app.config.values import (
    Alerts,
    Auth,
    Basic,
    Bearer,
    Changes,
    Config,
    ConfiguredRecipe,
    Delivered,
    Destination,
    Download,
    HeaderAuth,
    Installation,
    Invalid,
    OAuth2,
    Retention,
    Source,
    Tls,
    TracePlan,
)

__all__ = [
    "Alerts",
    "Auth",
    "Basic",
    "Bearer",
    "Changes",
    "Config",
    "ConfiguredRecipe",
    "Delivered",
    "Destination",
    "Download",
    "Finding",
    "HeaderAuth",
    "Installation",
    "Invalid",
    "OAuth2",
    "Problem",
    "Retention",
    "Secret",
    "SecretUrl",
    "Source",
    "Tls",
    "TracePlan",
    "changed_keys",
    "findings",
    "load",
    "process_environment",
]
