"""Makes the packages of a release; see scripts/package."""

import argparse
import datetime
import hashlib
import json
import os
import subprocess
import sys

import kinds
from archives import File
from bill import Crates, bill, notices

SHELLS = {
    "bash": "share/bash-completion/completions/baton",
    "zsh": "share/zsh/site-functions/_baton",
    "fish": "share/fish/vendor_completions.d/baton.fish",
}


class Release:
    """What is packaged, and where it goes."""

    def __init__(self, options):
        self.root = options.root
        self.out = options.out
        self.target = options.target
        self.base_url = options.base_url.rstrip("/")
        self.epoch = int(os.environ["SOURCE_DATE_EPOCH"])
        self.version = options.version

    def read(self, name):
        with open(os.path.join(self.root, name), encoding="utf-8") as file:
            return file.read()

    def template(self, name):
        return self.read(os.path.join("packaging", name))

    def write(self, name, data):
        path = os.path.join(self.out, name)
        with open(path, "wb") as file:
            file.write(data.encode() if isinstance(data, str) else data)
        print(path)

    def moment(self):
        return datetime.datetime.fromtimestamp(self.epoch, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def said(program, *words):
    """What the program prints, or nothing if it has no such command."""
    done = subprocess.run([program, *words], capture_output=True, env={"HOME": "/nonexistent"})
    return done.stdout if done.returncode == 0 else b""


def tree(release, program):
    """The files of a package, below its prefix."""
    with open(program, "rb") as file:
        files = {"bin/baton": File(file.read(), program=True)}
    for shell, path in SHELLS.items():
        if completion := said(program, "completions", shell):
            files[path] = File(completion)
    pages = os.path.join(release.root, "docs", "man")
    for page in sorted(os.listdir(pages)) if os.path.isdir(pages) else []:
        files["share/man/man1/" + page] = File(release.read("docs/man/" + page))
    crates = Crates(release.root, release.target)
    release.version = release.version or crates.version
    commit = json.loads(said(program, "update", "--json") or '{"commit": ""}')["commit"]
    documents = {
        "README.md": release.read("README.md"),
        "CHANGELOG.md": release.read("CHANGELOG.md"),
        "LICENSE-APACHE": release.read("LICENSE-APACHE"),
        "LICENSE-MIT": release.read("LICENSE-MIT"),
        "copyright": "baton is licensed under MIT OR Apache-2.0: see LICENSE-MIT and LICENSE-APACHE.\n"
        "What it contains of others: see THIRD-PARTY-NOTICES.\n",
        "THIRD-PARTY-NOTICES": notices(crates, release.target),
        "baton.cdx.json": bill(crates, release.version, commit, release.moment()),
    }
    files |= {"share/doc/baton/" + name: File(text) for name, text in documents.items()}
    return files


def package(release, program):
    """The packages of one target."""
    files = tree(release, program)
    stem = f"baton-{release.version}-{release.target}"
    for kind in (kinds.tarball, kinds.deb, kinds.npm_platform, kinds.wheel):
        if made := kind(release, files):
            release.write(*made)
    release.write(f"{stem}.cdx.json", files["share/doc/baton/baton.cdx.json"].data)
    release.write(f"{stem}.notices.txt", files["share/doc/baton/THIRD-PARTY-NOTICES"].data)


def finish(release):
    """What is made once for all targets: from the tarballs that are there."""
    names = os.listdir(release.out)
    begin, end = f"baton-{release.version}-", ".tar.gz"
    targets = [target for target in kinds.TARGETS if f"{begin}{target}{end}" in names]
    sums = {f"{begin}{target}{end}": sha256(os.path.join(release.out, f"{begin}{target}{end}")) for target in targets}
    release.write(*kinds.npm_launcher(release, targets))
    release.write(*kinds.plugins(release))
    release.write(*kinds.installer(release, sums))
    release.write(*kinds.formula(release, sums))
    names = sorted(name for name in os.listdir(release.out) if name != "SHA256SUMS")
    lines = [f"{sha256(os.path.join(release.out, name))}  {name}\n" for name in names]
    release.write("SHA256SUMS", "".join(lines))


def sha256(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--root", required=True)
    options.add_argument("--target", required=True)
    options.add_argument("--out", required=True)
    options.add_argument("--program")
    options.add_argument("--base-url", default="@BASE_URL@")
    options.add_argument("--version", default="")
    options.add_argument("--finish", action="store_true")
    options.add_argument("--tarball", action="store_true")
    options = options.parse_args()
    if options.target not in kinds.TARGETS:
        sys.exit(f"no package is known for {options.target}")
    release = Release(options)
    if options.program and options.tarball:
        release.write(*kinds.tarball(release, tree(release, options.program)))
    elif options.program:
        package(release, options.program)
    if options.finish:
        release.version = release.version or Crates(release.root, release.target).version
        finish(release)


main()
