"""A service of the operator's: it is given the file, and its answer is the artifact."""

from __future__ import annotations

from jobs.steps.kinds import ANY_TYPE, Field, StepKind

KIND = StepKind(
    use="http",
    release=1,
    target="jobs.steps.posting:Poster",
    fields={
        "url": Field("address"),
        "auth": Field("text", default=""),
        "private": Field("flag", default=False),
        "timeout": Field("duration", default=60, least=1, most=24 * 3600),
        "max_size": Field("size", default=64 * 1024**2, least=1),
        "types": Field("list", default=ANY_TYPE),
        "produces": Field("text", default=""),
    },
    place="network",
)
