# SPDX-License-Identifier: Apache-2.0
"""`millrace certs`: the certificates of a cluster."""

from __future__ import annotations

import os
from typing import Any, List

from millrace.cli.answers import Answer, table
from millrace.launch import certificates


def add_to(commands: Any) -> None:
    """The command's arguments."""
    parser = commands.add_parser(
        "certs",
        help="make the certificates of a cluster",
        description="Makes an authority in a folder, unless it is there, and certificates of its: task (for servers at "
        "the hosts that --host names), client and monitor, or one of a role. Keep ca.key where no task can read it.",
    )
    parser.add_argument("folder", help="where they are, and ca.pem and ca.key")
    parser.add_argument(
        "--host",
        action="append",
        default=[],
        metavar="NAME",
        help="a name or address at which tasks are called, or *.domain; may be repeated; localhost is always one",
    )
    parser.add_argument("--role", choices=certificates.ROLES, help="this certificate alone")
    parser.add_argument("--name", help="of the files, with --role; default: the role")
    parser.add_argument("--days", type=int, default=90, help="how long certificates are good (90); the authority is for ten years")
    parser.add_argument("--secret", action="store_true", help="also a file with a secret, for TLS without certificates of callers")
    parser.set_defaults(command=_certs)


def _certs(given: Any) -> Answer:
    if given.name and not given.role:
        raise ValueError("--name wants --role")
    if not 1 <= given.days <= 3650:
        raise ValueError("--days is %d, want 1 to 3650" % given.days)
    hosts = ["localhost", "127.0.0.1", "::1", *given.host]
    made: List[str] = [certificates.make_authority(given.folder)]
    for role in [given.role] if given.role else certificates.ROLES:
        made += certificates.make_certificate(given.folder, role, given.name, hosts if role == "task" else (), given.days)
    if given.secret:
        made.append(certificates.make_secret(given.folder))
    uses = {"ca.pem": "MILLRACE_TLS_CA", ".pem": "MILLRACE_TLS_CERT", ".key": "MILLRACE_TLS_KEY", "secret": "MILLRACE_TLS_SECRET"}
    rows = [(path, next(v for k, v in uses.items() if os.path.basename(path).endswith(k))) for path in made]
    return Answer({"files": made}, table(rows))
