"""Plain words for why something failed, and what to do about it."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Advice:
    """What an error means and what mends it, in words of ``language``."""

    meaning: str
    mend: str


_RULES = tuple(
    (re.compile(pattern, re.IGNORECASE), Advice(meaning, mend))
    for pattern, meaning, mend in (
        (
            r"encrypt|password",
            "The file is protected by a password, so nothing can be read from it.",
            "Ask for a version without a password; a new version runs by itself.",
        ),
        (
            r"text/html|login page|\bhtml\b",
            "The source sent a web page, most likely its sign-in page, in place of the file.",
            "Renew the credentials of the source's downloads, then retry.",
        ),
        (
            r"truncat|damaged|broken|xref|no page|page has no size|not a pdf|cannot be read",
            "The file itself is damaged.",
            (
                "Open it at its source; if it is broken there too, have it saved anew. "
                "Retrying alone will not help."
            ),
        ),
        (
            r"empty|zero",
            "The file is empty.",
            "Ask whoever saved it for its content; a new version runs by itself.",
        ),
        (
            r"digest|sha256|hash|wrong length|changed",
            "The bytes are not those that the source had announced.",
            (
                "If the source changed the file since, its next event brings the new version; "
                "else retry."
            ),
        ),
        (
            r"too large|larger than|limit|took too long|too long|memory|bomb|unpacked",
            "The work went beyond a limit of size, time or memory.",
            (
                "Look at the file; raise the limit in the configuration if it is rightly so large, "
                "then retry."
            ),
        ),
        (
            r"\b410\b|gone",
            "The other side says that its address is gone for good.",
            (
                "Ask the other side for its new address, change the configuration, resume the "
                "destination, then retry."
            ),
        ),
        (
            r"\b40[13]\b|unauthori|forbidden",
            "The other side did not accept our credentials.",
            "Renew the secret or token in the configuration, then retry.",
        ),
        (
            r"\b404\b|not found",
            "The other side knows nothing at this address.",
            (
                "Check the address in the configuration, and that the file is still at its source; "
                "then retry."
            ),
        ),
        (
            r"\b423\b|locked",
            "The file is locked at its source.",
            "Have whoever works on it close it, then retry.",
        ),
        (
            r"\b4(?:00|13|15|22)\b",
            "The receiver refuses this content, and would refuse it again.",
            "Read its answer below; mend the receiver or the mapping, then retry.",
        ),
        (
            r"\b429\b|too many|slow down",
            "The other side asks us to be slower.",
            "Nothing: it is tried again by itself. Lower the rate if it happens often.",
        ),
        (
            r"\b5\d\d\b",
            "The other side has trouble of its own.",
            "Once it works again, retry: nothing that is done is made or sent twice.",
        ),
        (
            r"certificate|tls|ssl",
            "The connection cannot be trusted: the other side's certificate is not valid for us.",
            "Have the certificate renewed, or name its authority in the configuration, then retry.",
        ),
        (
            r"private|loopback|not allowed|not one of the hosts|address is refused",
            "The address lies where we are not allowed to connect to.",
            "If it is right, name the host in the configuration of the source or destination.",
        ),
        (
            r"no answer|unclear|lost|cut off|reset",
            "It was sent, and no answer came: the receiver may have it or not.",
            "Look at the receiver. Sending again is safe if it drops known ids.",
        ),
        (
            r"resolve|connect|refused|unreach|time-?out|timed out|name or service",
            "The other side could not be reached.",
            "Check that it runs and can be reached from here, then retry.",
        ),
        (
            r"not installed",
            "A tool that this step needs is not there.",
            "Install it on the worker, then retry.",
        ),
    )
)
_UNKNOWN = Advice(
    "It failed for the reason given, and trying again by itself has ended.",
    "Mend what the reason names, then retry; or discard it with a reason.",
)


def advise(error: str) -> Advice:
    """What an error means, as far as its words tell."""
    return next((advice for rule, advice in _RULES if rule.search(error)), _UNKNOWN)


def all_advice() -> list[Advice]:
    """Every advice that there is, for whoever translates them."""
    return [advice for _, advice in _RULES] + [_UNKNOWN]
