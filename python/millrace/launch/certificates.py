# SPDX-License-Identifier: Apache-2.0
"""A certificate authority for one cluster, and certificates of its roles, made by the program openssl.

A role is an alternative name, URI:millrace://role/ROLE, which servers read: a task calls everything, a client what a master offers, a monitor the status.
Only a task's certificate is good for a server, and names the hosts where it may be one.
"""

from __future__ import annotations

import ipaddress
import os
import re
import secrets
import shutil
import subprocess
import tempfile
from typing import List, Optional, Sequence

ROLES = ("task", "client", "monitor")
_CURVE = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


def _openssl(*arguments: str) -> str:
    program = shutil.which("openssl")
    if program is None:
        raise ValueError("the program openssl is not installed, which makes certificates (Debian: apt-get install openssl)")
    done = subprocess.run([program, *arguments], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise ValueError("openssl %s: %s" % (arguments[0], done.stderr.strip()[-500:]))
    return done.stdout


def _name(host: str) -> str:
    """A host as an alternative name."""
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    try:
        return "IP:%s" % ipaddress.ip_address(bare)
    except ValueError:
        pass
    if len(host) > 253 or not re.fullmatch(r"(\*\.)?[A-Za-z0-9_]([A-Za-z0-9_-]*)(\.[A-Za-z0-9_-]+)*", host):
        raise ValueError("host is '%s', want a name, an address, or *.domain" % host[:200])
    return "DNS:%s" % host


def make_authority(folder: str, days: int = 3650) -> str:
    """ca.pem and ca.key in the folder, unless they are there; whoever has the key can make himself a task. The path of ca.pem."""
    certificate, key = os.path.join(folder, "ca.pem"), os.path.join(folder, "ca.key")
    if os.path.exists(certificate) and os.path.exists(key):
        return certificate
    os.makedirs(folder, mode=0o700, exist_ok=True)
    with _private():
        _openssl(
            "req",
            "-x509",
            *_CURVE,
            "-keyout",
            key,
            "-out",
            certificate,
            "-days",
            str(days),
            "-subj",
            "/CN=millrace cluster %s" % secrets.token_hex(4),
            "-addext",
            "basicConstraints=critical,CA:TRUE,pathlen:0",
            "-addext",
            "keyUsage=critical,keyCertSign,cRLSign",
        )
    return certificate


def make_certificate(folder: str, role: str, name: Optional[str] = None, hosts: Sequence[str] = (), days: int = 90) -> List[str]:
    """NAME.pem and NAME.key, signed by the folder's authority; their paths. A task's has its hosts' names beside its role."""
    if role not in ROLES:
        raise ValueError("role is '%s', want %s" % (role, " or ".join(ROLES)))
    name = name or role
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,60}", name) or name in ("ca", "secret"):
        raise ValueError("name is '%s', want letters, digits, '.', '_' and '-', and neither ca nor secret" % name[:100])
    if role == "task" and not hosts:
        raise ValueError("a task's certificate wants the names of its hosts: --host")
    names = ["URI:millrace://role/%s" % role, *(_name(h) for h in hosts)]
    path, key = os.path.join(folder, name + ".pem"), os.path.join(folder, name + ".key")
    with tempfile.TemporaryDirectory() as scratch, _private():
        request, extensions = os.path.join(scratch, "request"), os.path.join(scratch, "extensions")
        with open(extensions, "w") as file:
            file.write(
                "subjectAltName=%s\nextendedKeyUsage=clientAuth%s\nbasicConstraints=critical,CA:FALSE\n"
                % (",".join(names), ",serverAuth" if role == "task" else "")
            )
        _openssl("req", *_CURVE, "-keyout", key, "-out", request, "-subj", "/CN=%s" % name)
        _openssl(
            "x509",
            "-req",
            "-in",
            request,
            "-CA",
            os.path.join(folder, "ca.pem"),
            "-CAkey",
            os.path.join(folder, "ca.key"),
            "-days",
            str(days),
            "-set_serial",
            "0x" + secrets.token_hex(16),
            "-extfile",
            extensions,
            "-out",
            path,
        )
    return [path, key]


def make_secret(folder: str) -> str:
    """A file with a new secret, for clusters whose callers show no certificates; its path."""
    os.makedirs(folder, mode=0o700, exist_ok=True)
    path = os.path.join(folder, "secret")
    with _private(), open(path, "w") as file:
        file.write(secrets.token_hex(32) + "\n")
    return path


class _private:
    """Files that are made meanwhile are their owner's alone."""

    def __enter__(self) -> None:
        self._before = os.umask(0o077)

    def __exit__(self, *_: object) -> None:
        os.umask(self._before)
