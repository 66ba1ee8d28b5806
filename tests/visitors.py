"""Someone at the console with cookies and forms, and no script; and what to show them."""

from __future__ import annotations

import html
import re
from types import TracebackType
from typing import Self

import httpx

from app.store import tables as t
from app.web.access import Role
from domain.outcomes import Dead
from tests.installations import Installation, event, found
from tests.workings import finish_job


class Visitor:
    """A browser that knows cookies and forms, and nothing else."""

    def __init__(self, running: Installation, role: Role | None = "admin", *scope: str) -> None:
        self.http = httpx.Client(base_url=running.server.url, timeout=30)
        if role is not None:
            self.enter(running.token(role, *scope))

    def enter(self, token: str) -> httpx.Response:
        return self.http.post("/console/sign-in", data={"token": token, "next": "/console/files"})

    def see(self, path: str, status: int = 200) -> str:
        answer = self.http.get(f"/console{path}")
        assert answer.status_code == status, (path, answer.status_code, answer.text[:2000])
        return answer.text

    def press(self, page: str, order: str, **told: str) -> httpx.Response:
        """Send the first form for this order, with its hidden fields."""
        shown = self.http.get(f"/console{page}").text
        return self.send(shown, order, **told)

    def send(self, shown: str, order: str, **told: str) -> httpx.Response:
        action = f'action="/console/orders/{order}"'
        forms = [form for form in shown.split("<form") if action in form.partition(">")[0]]
        assert forms, f"no form for {order}"
        fields = re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', forms[0])
        hidden = {name: html.unescape(value) for name, value in fields}
        return self.http.post(f"/console/orders/{order}", data=hidden | told)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.http.close()


def failed(running: Installation, number: int = 1, reason: str = "is encrypted") -> str:
    """A file whose download gave up."""
    running.send(event(id=f"evt-{number}", file_id=f"f-{number}"))
    (job,) = found(running, t.jobs, state="ready")
    finish_job(running, job.id, Dead(reason))
    return str(job.stream)
