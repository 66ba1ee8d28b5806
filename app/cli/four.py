"""The four ways of doing something again, and when each is the right one."""

from __future__ import annotations

FOUR = """\b
The four ways to do something again:
  retry      dead work again       a job or message gave up, its cause is mended
  redeliver  same bytes again      a receiver lost a message that it had got
  reprocess  a new run             the recipe has changed
  replay     rebuild, sends nothing  the tables are to be checked against the log
None of them makes a second artifact or message for work that is done."""
