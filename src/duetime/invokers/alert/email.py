"""E-mail: one message, by SMTP, on a thread."""

from __future__ import annotations

import asyncio
import smtplib
import socket
import ssl
from collections.abc import Callable
from dataclasses import replace
from email.message import EmailMessage
from email.utils import formatdate
from ipaddress import ip_address
from typing import Any

from duetime.model.alert.channel import Channel, Tls
from duetime.model.settle import AttemptFailed, GiveUp, NotHere
from duetime.model.url import ALLOW_IT, Egress

TIMEOUT = 20.0  # seconds, for each step
SMTP_PORTS = frozenset({25, 465, 587, 2525})


def message(
    channel: Channel, subject: str, text: str, identity: str, now: float, reply_to: str | None = None
) -> EmailMessage:
    """The same id in every attempt, so that a repeated message can be recognised."""
    made = EmailMessage()
    made["Subject"] = " ".join(subject.split())[:200]
    made["From"] = channel.settings["sender"]
    made["To"] = ", ".join(channel.settings["to"])
    made["Date"] = formatdate(now)
    made["Message-ID"] = f"<{identity}@{channel.settings['sender'].rpartition('@')[2]}>"
    made["Auto-Submitted"] = "auto-generated"
    if reply_to is not None:  # mail programs show the recovery below the alert
        made["In-Reply-To"] = made["References"] = reply_to
    made.set_content(text)
    return made


async def send(channel: Channel, mail: EmailMessage, password: str | None, egress: Egress) -> dict[str, Any]:
    refused = await asyncio.to_thread(_send, channel, mail, password, egress)
    return {"accepted": len(channel.settings["to"]) - len(refused), "refused": sorted(refused)}


def _send(channel: Channel, mail: EmailMessage, password: str | None, egress: Egress) -> list[str]:
    settings = channel.settings
    host, port = settings["host"], settings["port"]
    where = f"{host} port {port}"
    connect = _guarded(replace(egress, ports=egress.ports | SMTP_PORTS))
    try:
        with _session(settings["tls"], connect) as session:
            session.connect(host, port)
            session.ehlo()
            if settings["tls"] == Tls.STARTTLS:
                session.starttls(context=ssl.create_default_context())
                session.ehlo()
            if password is not None:
                session.login(settings["username"], password)
            return list(session.send_message(mail))
    except smtplib.SMTPRecipientsRefused as problem:
        codes = sorted({code for code, _ in problem.recipients.values()})
        raise _failed(f"{where} refuses all recipients ({', '.join(map(str, codes))})", max(codes)) from None
    except smtplib.SMTPAuthenticationError as problem:
        raise GiveUp(f"{where} does not accept user name and password ({problem.smtp_code})") from None
    except smtplib.SMTPNotSupportedError:
        raise GiveUp(f"{where} offers no STARTTLS or login: change tls of the channel") from None
    except smtplib.SMTPResponseException as problem:
        raise _failed(f"{where} answers {problem.smtp_code}", problem.smtp_code) from None
    except ssl.SSLError as problem:
        raise AttemptFailed(f"{where}: no secure connection ({problem.reason})") from None
    except (smtplib.SMTPException, OSError) as problem:
        raise AttemptFailed(f"{where} cannot be reached ({type(problem).__name__})") from None


def _failed(text: str, code: int) -> Exception:
    return GiveUp(text) if code >= 500 else AttemptFailed(text)


def _guarded(egress: Egress) -> Callable[[str, int], socket.socket]:
    """Connects to addresses that the operator allows. The address that is checked is dialled."""

    def connect(host: str, port: int) -> socket.socket:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        for _, _, _, _, address in found:
            if egress.refusal(host, port, ip_address(str(address[0]))) is not None:
                raise NotHere(f"target not allowed ({host} port {port}): {ALLOW_IT}")
        problem: OSError | None = None
        for _, _, _, _, address in found:
            try:
                return socket.create_connection((str(address[0]), port), TIMEOUT)
            except OSError as failure:
                problem = failure
        raise problem or OSError("no address")

    return connect


def _session(tls: str, connect: Callable[[str, int], socket.socket]) -> smtplib.SMTP:
    class Guarded(smtplib.SMTP):
        def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
            made = connect(host, port)
            if tls != Tls.TLS:
                return made
            return ssl.create_default_context().wrap_socket(made, server_hostname=host)

        def connect(self, host: str = "localhost", port: int = 0, source_address: Any = None) -> Any:
            self._host = host  # STARTTLS checks the certificate against it
            return super().connect(host, port, source_address)

    return Guarded(timeout=TIMEOUT)
